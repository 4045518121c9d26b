"""What is written and drawn on the chat page stands out against its ground (WCAG 2.2, 1.4.3 and 1.4.11), in both themes."""

from page_browser import WithAServer

TEXT = r"""# Heading

text [link](http://e.org) `code` note[^1] $\unknown x$ $a

> quote

- [x] done

```python
@decorated
def f(x: int) -> str:  # comment
    return "a" + 1 + Foo(None)
```

```diff
+a
-b
```

```json
{"a": 1}
```

| a | b |
|---|---|
| 1 | 2 |

[^1]: the note"""

FAINT = r"""
    const parse = (colour) => {
        const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
        return colour.startsWith('color(') ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
    };
    const over = (top, ground) => [0, 1, 2].map((i) => top[i] * top[3] + ground[i] * (1 - top[3])).concat(1);
    const linear = (v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const luminance = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
    const ratio = (one, other) => {
        const [more, less] = [luminance(one), luminance(other)].sort((a, b) => b - a);
        return (more + .05) / (less + .05);
    };
    const grounds = new Map([[null, [255, 255, 255, 1]]]);
    const ground_of = (e) => {
        if (!grounds.has(e)) grounds.set(e, over(parse(getComputedStyle(e).backgroundColor), ground_of(e.parentElement)));
        return grounds.get(e);
    };
    const seen = (e) => e.checkVisibility({opacityProperty: true, visibilityProperty: true}) && !e.closest('.hidden-visually, .skip, :disabled');
    const faint = [];
    let checked = 0;
    const check = (e, what, colour, ground, least) => {
        ++checked;
        const found = ratio(over(parse(colour), ground), ground);
        if (found < least) faint.push(`${what} of ${e.tagName} ${e.id} ${e.getAttribute('class')}: ${found.toFixed(2)}`);
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; node = texts.nextNode();) {
        const e = node.parentElement, style = getComputedStyle(e);
        if (!node.data.trim() || !seen(e)) continue;
        const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
        check(e, 'text', style.color, ground_of(e), large ? 3 : 4.5);
    }
    for (const e of document.querySelectorAll('button, input, textarea, select')) {
        const style = getComputedStyle(e);
        if (!seen(e) || !parseFloat(style.borderTopWidth)) continue;
        // A filled button needs no border.
        const outside = ground_of(e.parentElement), inside = ground_of(e);
        if (ratio(inside, outside) < 3) check(e, 'border', style.borderTopColor, outside, 3);
    }
    for (const e of document.querySelectorAll('.icon')) if (seen(e)) check(e, 'picture', getComputedStyle(e).stroke, ground_of(e), 3);
    return [checked, faint];"""


class Contrast(WithAServer):
    def check(self, what, least):
        checked, faint = self.browser.execute_script(FAINT)
        self.assertEqual(faint, [], what)
        self.assertGreater(checked, least, what)

    def test_contrast(self):
        answer = {"role": "assistant", "content": TEXT, "reasoning": "why", "finish": "length", "usage": {"prompt_tokens": 9, "total_tokens": 20}}
        for theme in ("light", "dark"):
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
            self.open(self.server.port, f"/?{theme}")
            self.check(f"{theme}, empty", 15)
            self.show(messages=[{"role": "user", "content": "q", "attachments": [{"name": "a.txt", "text": "a"}]}, answer])
            self.browser.execute_script("for (const e of document.querySelectorAll('details:not(#menu)')) e.open = true")
            self.menu("#open-machine")
            self.wait(lambda: self.all(".plan"))
            self.check(f"{theme}, answer and machine", 80)
            self.menu("#open-settings")
            self.browser.execute_script("document.querySelector('.more').open = true")
            self.check(f"{theme}, settings", 100)
