"""What the chat page makes of texts: Markdown, mathematics, code."""

import itertools
import json
import pathlib

from page_browser import WithAServer


class Texts(WithAServer):
    SHAPE = """
        const shape = (node) => node.nodeType === 3 ? node.data : node.classList.contains('code-head') ? '' : node.tagName === 'SPAN' ? node.textContent :
            '<' + node.tagName.toLowerCase() + (node.start > 1 ? ' ' + node.start : '') + '>' +
            [...node.childNodes].map(shape).join('') + '</>';
        const [cases, done] = arguments;"""

    def check_shapes(self, file, script):
        cases = json.loads(pathlib.Path(__file__).with_name(file).read_text())
        found = self.browser.execute_async_script(self.SHAPE + script + ".catch((error) => done([String(error)]));", cases)
        for case, shape in itertools.zip_longest(cases, found):
            self.assertEqual(shape, case["shape"], case["text"])

    def test_markdown(self):
        self.check_shapes("page_markdown.json", """
            import('./markdown.js').then(({MarkdownView}) => done(cases.map(({text, pending}) => {
                const root = document.createElement('div');
                const view = new MarkdownView(root);
                // As a stream brings it; what remains must be the same as all at once.
                for (let i = 0; i < text.length; ++i) view.set(text.slice(0, i), true);
                view.set(text, pending);
                return [...root.childNodes].map(shape).join('');
            })))""")

    def test_mathematics(self):
        self.check_shapes("page_math.json", """
            import('./math.js').then(({math}) => done(cases.map(({text}) => {
                const element = math(text, true);
                return element && shape(element);
            })))""")

    def test_texts_from_right_to_left(self):
        self.show(("user", "שלום\nEnglish"), ("assistant", "שלום (a) 1.\n\n- ראשון\n\n- second\n\nEnglish שלום\n\n`x` שלום\n\n> ציטוט\n\n| א | ב |\n|--|--|\n\n```\nשלום\n```"))
        directions = self.browser.execute_script(
            "return [...document.querySelectorAll('.plain, .message.assistant .markdown > *, .markdown li, pre, p code')].map((e) => [e.tagName, getComputedStyle(e).direction])")
        self.assertEqual(directions, [["DIV", "rtl"], ["P", "rtl"], ["UL", "rtl"], ["LI", "rtl"], ["LI", "rtl"], ["P", "ltr"], ["P", "rtl"], ["CODE", "ltr"], ["BLOCKQUOTE", "rtl"],
                                      ["DIV", "rtl"], ["DIV", "ltr"], ["PRE", "ltr"]])

    def test_layers_of_formulas_are_bounded(self):
        self.show(("assistant", r"$\widehat{abc}$ " * 300), ("assistant", r"$\overbrace{abc}$ " * 300))
        self.assertEqual(len(self.all("mover")), 600)
        self.assertEqual(len(self.all(".math-wide")), 200)

    def test_a_formula_of_a_stream_does_not_flicker(self):
        """It is its source, and from then on a formula."""
        text = r"a $x_1 * y_2$ b *c* \(d_1 * e\)" + "\n\n$$\n- x_1\n* y\n$$\n\nend"
        seen = self.browser.execute_async_script("""
            const [text, done] = arguments;
            import('./markdown.js').then(({MarkdownView}) => {
                const root = document.createElement('div'), view = new MarkdownView(root), seen = [];
                for (let i = 1; i <= text.length; ++i) {
                    view.set(text.slice(0, i), true);
                    seen.push([root.querySelectorAll('math').length, root.querySelectorAll('li, em').length]);
                }
                done(seen);
            }).catch((error) => done(String(error)));""", text)
        self.assertEqual([n for n, _ in itertools.groupby(formulas for formulas, _ in seen)], [0, 1, 2, 3])
        self.assertEqual([n for n, _ in itertools.groupby(others for _, others in seen)], [0, 1])

    def test_a_hostile_text_takes_no_time(self):
        """Of 25 kB, and of 200 kB of what opens formulas: the time of any other text of this length."""
        took = self.browser.execute_async_script(r"""
            const done = arguments[arguments.length - 1];
            import('./markdown.js').then(({MarkdownView}) => {
                const n = 25000, took = {};
                const of = (text) => text.repeat(n / text.length);
                for (const text of ['# ' + of(' ') + 'x', 'a|b\n| -' + of(' ') + 'x', of('*a '), of('['), of('`') + 'x', of('`` ` '), of('> '),
                                    of('- '), of('_a*'), 'http://' + of('.'), of('- a\n\n'), '``` ' + of(' ') + '`', of('**'), of('- - '),
                                    '$'.repeat(200000), '\\left('.repeat(10000), of('[a]('), of('[a](b) '), '$' + '\\left('.repeat(300) + '$', '$' + '{'.repeat(1900) + '$', of('$}$ '), of('\\('),
                                    of('\\[\n'), of('a \\[\n'), of('\\begin{align}\n'), of('$$a '), of('$$\n'), of('$a '), of('$x$ '),
                                    '$$' + '\\hat'.repeat(2000) + '$$', '$$x' + '_{a'.repeat(2000) + '}'.repeat(2000) + '$$',
                                    '$$' + '\\text{$'.repeat(1000) + '$$', '$$\\begin{matrix}' + '&'.repeat(9000) + '\\end{matrix}$$',
                                    '$$\\ce{' + '->['.repeat(2500) + '}$$', '$$' + '\\ce{'.repeat(1500) + '}'.repeat(1500) + '$$', '$$\\ce{' + '{'.repeat(4000) + '}$$',
                                    '| a |\n|--|\n| ' + of('`` ` '), of('[^a]: b\n'), of('[^1]'), '[^' + of('a'), of('&'), of('&amp;'), of('- [ ] a\n'), of('|$|x|$')]) {
                    const start = performance.now();
                    new MarkdownView(document.createElement('div')).set(text, true);
                    took[text.slice(0, 12)] = performance.now() - start;
                }
                done(took);
            }).catch((error) => done(String(error)));""")
        # One that were not linear would take minutes.
        self.assertLess(max(took.values()), 5000, took)

    def test_colours_in_code(self):
        cases = json.loads(pathlib.Path(__file__).with_name("page_code.json").read_text())
        found = self.browser.execute_async_script("""
            const [cases, done] = arguments;
            import('./highlight.js').then(({highlight}) => done(cases.map(({language, text}) => {
                const nodes = highlight(text, language);
                return nodes && nodes.map((node) => node.nodeType === 3 ? node.data : `[${node.className.slice(3)} ${node.textContent}]`).join('');
            }))).catch((error) => done([String(error)]));""", cases)
        for case, shape in itertools.zip_longest(cases, found):
            self.assertEqual(shape, case["shape"], case["language"])
        # Nothing is lost of any text, and none takes long.
        found = self.browser.execute_async_script(r"""
            const [done] = arguments;
            import('./highlight.js').then(({highlight}) => {
                const bad = [], length = 10000;
                for (const language of ['c', 'js', 'rust', 'py', 'bash', 'sql', 'json', 'html', 'css', 'diff', 'tex']) {
                    for (const part of ['a', '"', "'", '`', '/*', '<', '#', '$', '${', '\\', '-', '1', '@', ' ', '\n', '\x22\x22\x22', "'a", 'a(', '[[', ':', '1.', ' -a']) {
                        const text = part.repeat(length / part.length), start = performance.now();
                        const nodes = highlight(text, language);
                        if (nodes.map((node) => node.textContent).join('') !== text) bad.push([language, part, 'lost']);
                        if (performance.now() - start > 2000) bad.push([language, part, performance.now() - start]);
                    }
                }
                done(bad);
            }).catch((error) => done(String(error)));""")
        self.assertEqual(found, [])

    def test_wrapped_code(self):
        self.show(("assistant", "```c\n" + "int x; " * 50 + "\n```"))
        pre = ".code pre"
        wide = f"const e = document.querySelector('{pre}'); return e.scrollWidth > e.clientWidth"
        self.assertTrue(self.browser.execute_script(wide))
        self.click(".code .wrap")
        self.assertFalse(self.browser.execute_script(wide))
        self.browser.refresh()
        self.wait(lambda: self.all(pre))
        self.assertFalse(self.browser.execute_script(wide))
        self.assertEqual(self.one(".code .wrap").get_attribute("aria-pressed"), "true")

    def test_growing_code_stays_the_same_element(self):
        same = self.browser.execute_async_script("""
            const [done] = arguments;
            import('./markdown.js').then(({MarkdownView}) => {
                const root = document.createElement('div'), view = new MarkdownView(root);
                view.set('a\\n\\n```c\\nint x;', true);
                const before = root.lastChild;
                view.set('a\\n\\n```c\\nint x;\\nint y;', true);
                const grown = root.lastChild === before && before.querySelector('pre').textContent;
                view.set('a\\n\\n```c\\nint x;\\nint y;\\n```\\n\\nend');
                done([grown, root.childNodes[1] === before, root.lastChild.textContent]);
            }).catch((error) => done(String(error)));""")
        self.assertEqual(same, ["int x;\nint y;", True, "end"])

    def test_markup_stays_text(self):
        hostile = "<img src=x onerror=alert(1)>"
        self.ask(hostile)
        self.assertEqual(self.texts(".message.user .body")[0], hostile)
        # The same from the model, and addresses that are scripts.
        chat = {"id": "x", "title": hostile, "messages": [{"role": "assistant", "content": "\n\n".join([
            hostile, "**" + hostile + "**", "[a](javascript:alert(1))", "[b](data:text/html,x)", "[c](https://example.org/?a=1)",
            "```" + hostile + "\n" + hostile + "\n```", "| " + hostile + " | b |\n| --- | --- |\n| 1 | <script>alert(1)</script> |",
            "<a href='https://example.org'>x</a>", "![i](https://example.org/i.png)"]), "reasoning": hostile,
            "calls": [{"id": "1", "name": hostile, "arguments": hostile}]}]}
        self.browser.execute_script("""
            localStorage.setItem('tessera.chat.x', arguments[0]);
            localStorage.setItem('tessera.index', JSON.stringify([{id: 'x', title: 't', updated: 1}]));""", json.dumps(chat))
        self.open(self.server.port, "/?markup#x")
        self.wait(lambda: self.all(".message.assistant table"))
        self.click(".reasoning summary")
        self.assertEqual(self.all("#messages img, #messages script, #title img, #chat-list img"), [])
        links = self.browser.execute_script(
            "return [...document.querySelectorAll('#messages a')].map(a => [a.href, a.rel, a.target])")
        self.assertEqual(links, [["https://example.org/?a=1", "noopener noreferrer", "_blank"],
                                 ["https://example.org/", "noopener noreferrer", "_blank"],
                                 ["https://example.org/i.png", "noopener noreferrer", "_blank"]])
        self.assertIn(hostile, self.texts(".message.assistant .body")[0])
        self.assertEqual(self.texts(".message.assistant pre code")[0], hostile)

    def test_versions_that_are_damaged_are_left_out(self):
        self.show(("user", "a"), ("assistant", "b"))
        kept = self.browser.execute_async_script("""
            const [done] = arguments;
            import('./store.js').then(({clean_chat}) => {
                const tail = [{role: 'assistant', content: 'c'}];
                let deep = [{role: 'assistant', content: 'd'}];
                for (let i = 0; i < 3000; ++i) deep = [{role: 'assistant', content: 'd', versions: [deep, null]}];
                const depth = ([{versions}]) => versions ? 1 + depth(versions[0]) : 0;
                const given = [[null, tail], [null, null], [tail], 'x', [null, [5]], [null, tail, [{role: 'root'}]], {0: null}];
                const messages = given.map((versions) => ({role: 'assistant', content: 'b', versions}));
                done([...clean_chat({messages}, 'x').messages.map(({versions}) => versions?.length ?? 0), depth(clean_chat({messages: deep}, 'x').messages)]);
            }).catch((error) => done(String(error)));""")
        self.assertEqual(kept, [2, 0, 0, 0, 0, 2, 0, 100])
