"""The chat page in headless Chromium."""

import json
import pathlib
import re

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.keys import Keys

import running_server
from page_browser import ANSWER, QUESTION, Page, WithAServer
from page_contrast import Contrast  # noqa: F401: its tests are run, too
from page_pretend import PretendServer
from page_texts import Texts  # noqa: F401: its tests are run, too
from running_server import RunningServer


class Conversations(WithAServer):
    def test_streamed_answer_and_its_figures(self):
        self.assertEqual(self.ask(), ANSWER)
        stats = self.texts(".message.assistant .stats")[0]
        self.assertRegex(stats, r"^20 tokens · \d[\d.,]* tokens/s · prompt \d+ tokens")
        self.assertRegex(self.one("#context-text").text, r"^\d+ of [\d,]+ tokens$")
        self.assertEqual(self.one("#status").get_attribute("textContent"), "The answer has ended: 20 tokens")
        self.assertEqual(self.one("#title").text, QUESTION)
        # The second question shares what the first has left in the cache.
        self.ask("Count from 1 to 10 in German.")
        self.assertRegex(self.texts(".message.assistant .stats")[1], r"\d+ % of it cached")
        self.shoot("desktop")

    def do_when_text_comes(self, action):
        """Within the page, as a short answer may end before a command from here arrives."""
        self.browser.execute_script("""
            const observer = new MutationObserver(() => {
                const texts = document.querySelectorAll('.message.running .body > .markdown');
                if (!texts.length || texts[texts.length - 1].innerText.length < 6) return;
                observer.disconnect();
                %s
            });
            observer.observe(document.getElementById('messages'), {childList: true, subtree: true, characterData: true});""" % action)

    # Answers of random tokens, which rarely end by themselves.

    RANDOM = {"temperature": "9", "top_k": "0", "top_p": "1", "min_p": "0"}

    def test_edit_and_continue_from_there(self):
        self.ask()
        self.ask("Count from 1 to 10 in German.")
        self.tool(".message:nth-child(1)", "Edit")
        area = self.one(".edit textarea")
        self.assertEqual(area.get_attribute("value"), QUESTION)
        area.clear()
        area.send_keys("Count from 3 to 7 in Spanish.", Keys.ENTER)
        self.wait(lambda: self.answers() == ["tres, cuatro, cinco, seis, siete"] and self.ended())
        self.assertEqual(self.texts(".message.user .body"), ["Count from 3 to 7 in Spanish."])
        self.click("#notice button", "Undo")
        self.assertEqual(self.texts(".message.user .body"), [QUESTION, "Count from 1 to 10 in German."])

    def test_search_and_dates(self):
        day = 86400000
        titles = {"a": ("Letters", 0), "b": ("Numbers", 1), "c": ("Colours", 5), "d": ("Old <b>one</b>", 20), "e": ("Older", 400)}
        self.browser.execute_script("""
            const now = new Date().setHours(12), index = [];
            for (const [id, [title, days]] of Object.entries(arguments[0])) {
                const updated = now - days * arguments[1], content = id === 'c' ? 'x'.repeat(100) + ' RED and ÄHRE <i>' : 'nothing';
                index.push({id, title, updated});
                localStorage.setItem('tessera.chat.' + id, JSON.stringify({id, title, updated, messages: [{role: 'user', content}]}));
            }
            localStorage.setItem('tessera.index', JSON.stringify(index));""", titles, day)
        self.open(self.server.port, "/?dates")
        self.wait(lambda: len(self.all(".chat-entry")) == 5)
        self.assertEqual(self.texts("#chat-list .date")[:4], ["Today", "Yesterday", "Last 7 days", "Last 30 days"])
        self.assertRegex(self.texts("#chat-list .date")[4], r"^[A-Z][a-z]+ 20\d\d$")
        self.shoot("dates")
        field = self.one("#search")
        for words, found in (("ähre red", ["Colours"]), ("LETTERS", ["Letters"]), ("old", ["Old <b>one</b>", "Older"]), ("red letters", [])):
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(words)
            self.wait(lambda: [text.split("\n")[0] for text in self.texts(".chat-entry")] == found, 10, words)
        self.assertIn("No conversation has all of these words.", self.one("#chat-list").text)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys("red <i>")
        self.wait(lambda: self.texts("#chat-list mark") == ["RED"])
        self.assertIn("… xxx".replace(" ", ""), self.one(".excerpt").text)
        self.assertEqual(self.one("#status").get_attribute("textContent"), "One conversation was found")
        field.send_keys(Keys.ESCAPE)
        self.wait(lambda: len(self.all(".chat-entry")) == 5)

    def test_versions(self):
        self.ask()
        self.settings(max_tokens="4")
        self.tool(".message.assistant", "Regenerate")
        self.wait(lambda: self.answers() == ["un, deux,"] and self.ended())
        self.assertIn("ended at the limit of tokens", self.texts(".message.assistant")[0])
        self.assertEqual(len(self.all(".message")), 2)
        self.assertEqual(self.texts(".versions"), ["", "2 of 2"])
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "input")
        # Each version has what follows it.
        self.ask("Count from 3 to 7 in Spanish.")
        self.tool(".message:nth-child(2)", "Earlier version")
        self.wait(lambda: self.answers() == [ANSWER])
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("aria-label"), "Earlier version")
        self.assertEqual(self.one("#status").get_attribute("textContent"), "Version 1 of 2")
        self.tool(".message:nth-child(2)", "Earlier version")  # there is none
        self.browser.refresh()
        self.wait(lambda: self.answers() == [ANSWER] and self.texts(".versions")[1] == "1 of 2")
        self.tool(".message:nth-child(2)", "Later version")
        self.wait(lambda: len(self.answers()) == 2)
        # An answer that is edited is a version, and so is a question.
        self.tool(".message:nth-child(2)", "Edit")
        area = self.one(".edit textarea")
        area.clear()
        area.send_keys("one, two", Keys.CONTROL, Keys.ENTER)
        self.wait(lambda: self.answers()[0] == "one, two")
        self.assertEqual((len(self.answers()), self.texts(".versions")[1]), (2, "3 of 3"))
        self.tool(".message:nth-child(1)", "Edit")
        area = self.one(".edit textarea")
        area.clear()
        area.send_keys("Count from 3 to 7 in Spanish.", Keys.ENTER)
        self.wait(lambda: len(self.answers()) == 1 and self.ended())
        self.assertEqual(self.texts(".versions"), ["2 of 2", ""])
        self.tool(".message:nth-child(1)", "Earlier version")
        self.wait(lambda: self.answers()[0] == "one, two" and self.texts(".versions")[1] == "3 of 3")
        self.menu("#export-json")
        exported = json.loads(self.download("*.json"))["conversations"][0]["messages"]
        self.assertEqual([[m["content"] for m in tail] if tail else None for tail in exported[1]["versions"]][:1], [[ANSWER]])

    DROP = """
        const transfer = new DataTransfer();
        for (const [name, content] of arguments[0])
            transfer.items.add(new File([typeof content === 'string' ? content : new Uint8Array(content)], name));
        document.body.dispatchEvent(new DragEvent('drop', {bubbles: true, cancelable: true, dataTransfer: transfer}));"""

    PASTE = """
        const transfer = new DataTransfer(), input = document.getElementById('input');
        transfer.setData('text/plain', arguments[0]);
        const event = new ClipboardEvent('paste', {bubbles: true, cancelable: true, clipboardData: transfer});
        return input.dispatchEvent(event);"""

    def test_attachments(self):
        chosen = pathlib.Path(self.folder.name, "chosen.txt")
        chosen.write_bytes("\ufeffGrüße".encode("utf-16-le"))
        self.one("#attach-files").send_keys(str(chosen))
        self.wait(lambda: self.texts(".chip .file-name") == ["chosen.txt"])
        self.browser.execute_script(self.DROP, [["a.py", "x = 1\r\n```\n"], ["a.png", [137, 80, 0, 1]], ["large.txt", "x" * 600000]])
        self.wait(lambda: "a.png is no text file" in self.one("#notice").text)
        self.assertIn("large.txt has 586 KiB; files of at most 512 KiB", self.one("#notice").text)
        # A short text is pasted as it is, a long one is a file, which may be put into the message.
        self.assertTrue(self.browser.execute_script(self.PASTE, "short"))
        self.assertFalse(self.browser.execute_script(self.PASTE, "line\n" * 61))
        self.assertFalse(self.browser.execute_script(self.PASTE, "y" * 5000))
        self.assertEqual(self.texts(".chip .file-name"), ["chosen.txt", "a.py", "Pasted text", "Pasted text 2"])
        self.click(".chip [aria-label='Put Pasted text 2 into the message']")
        self.assertEqual(self.one("#input").get_attribute("value"), "y" * 5000)
        self.one("#input").clear()
        self.click(".chip [aria-label='Remove Pasted text']")
        self.assertEqual(self.texts(".chip .file-name"), ["chosen.txt", "a.py"])
        self.shoot("attachments")
        self.ask()
        self.assertFalse(self.one("#attachments").is_displayed())
        self.browser.refresh()
        self.wait(lambda: self.texts(".file .file-name") == ["chosen.txt", "a.py"])
        self.click(".file:nth-child(2) summary")
        self.wait(lambda: self.texts(".file pre") == ["x = 1\n```"])
        self.menu("#export-markdown")
        self.assertIn("File `a.py`:\n\n````\nx = 1\n```\n\n````", self.download("*.md"))
        sent = self.browser.execute_async_script("""
            const [chat, done] = arguments;
            import('./attachments.js').then(({content_of}) => done(content_of(JSON.parse(chat).messages[0])));""", *self.stored().values())
        self.assertEqual(sent, "File chosen.txt:\n```txt\nGrüße\n```\n\nFile a.py:\n````py\nx = 1\n```\n````\n\n" + QUESTION)

    def test_conversations_of_the_first_version(self):
        """As it stored them, with all of its fields."""
        self.show(created=5, updated=6, named=True, system="Be brief.", messages=[
            {"role": "user", "content": "a", "time": 7},
            {"role": "assistant", "content": "b", "time": 8, "model": "old", "finish": "stop", "reasoning": "c", "reasoning_seconds": 2.5,
             "calls": [{"id": "1", "name": "f", "arguments": "{}"}], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7,
                                                                                "cached_tokens": 0}, "timings": {"predicted_per_second": 9}}])
        self.assertEqual(self.answers(), ["b"])
        self.assertEqual(self.texts(".message.assistant .role"), ["old"])
        self.assertEqual(self.texts(".message.assistant .stats"), ["4 tokens · 9 tokens/s · prompt 3 tokens"])
        self.assertEqual(self.texts(".reasoning summary"), ["Reasoned for 2.5 s"])
        self.assertEqual(self.texts(".call code")[0], "f")
        self.assertEqual(self.texts(".versions, .attached"), ["", ""])
        self.ask()
        self.assertEqual(json.loads(self.stored()["tessera.chat.x"])["system"], "Be brief.")

    def test_reload_keeps_and_other_conversations(self):
        self.ask()
        first = self.browser.current_url
        self.browser.refresh()
        self.wait(lambda: self.answers() == [ANSWER])
        self.assertEqual(self.texts("#chat-list button"), [QUESTION])
        self.click("#new-chat")
        self.assertEqual(self.answers(), [])
        self.ask("Count from 3 to 7 in Spanish.")
        self.assertEqual(len(self.stored()), 2)
        self.click("#chat-list button", QUESTION)
        self.assertEqual(self.answers(), [ANSWER])
        self.assertEqual(self.browser.current_url.split("#")[1], first.split("#")[1])
        # Rename, delete, undo.
        self.menu("#rename")
        self.browser.switch_to.active_element.send_keys("French", Keys.ENTER)
        self.wait(lambda: "French" in self.texts("#chat-list button"))
        self.wait(lambda: self.browser.switch_to.active_element.get_attribute("aria-label") == "More")
        self.menu("#delete")
        self.assertEqual(len(self.stored()), 1)
        self.click("#notice button", "Undo")
        self.assertEqual(len(self.stored()), 2)
        self.assertEqual(self.one("#title").text, "French")

    def test_reload_in_the_middle_keeps_what_came(self):
        def lost():
            return "connection was lost" in "".join(self.texts(".message.assistant .finish"))

        self.settings(**self.RANDOM)
        for _ in range(8):
            self.do_when_text_comes("sessionStorage.setItem('acted', '1'); location.reload();")
            self.send(QUESTION)
            self.wait(lambda: self.all(".message.assistant") and self.ended())
            if self.browser.execute_script("return sessionStorage.getItem('acted')"):
                # A fast machine may end the answer while the page goes away.
                try:
                    self.wait(lost, 5)
                    break
                except TimeoutException:
                    self.browser.execute_script("sessionStorage.removeItem('acted')")
            self.click("#new-chat")
        else:
            self.fail("no answer was cut off by a reload")
        self.assertGreater(len(self.answers()[0]), 5)
        self.assertEqual(len(self.all(".message")), 2)

    def test_export_and_import(self):
        self.ask()
        self.menu("#export-markdown")
        self.assertEqual(self.download("*.md"), f"# {QUESTION}\n\n## User\n\n{QUESTION}\n\n## Assistant\n\n{ANSWER}\n")
        self.menu("#export-json")
        exported = self.download("*.json")
        value = json.loads(exported)
        self.assertEqual([m["content"] for m in value["conversations"][0]["messages"]], [QUESTION, ANSWER])
        self.browser.execute_script("localStorage.clear()")
        self.open(self.server.port, "/?again")
        path = pathlib.Path(self.folder.name, "given.txt")
        path.write_text(exported)
        self.one("#import-file").send_keys(str(path))
        self.wait(lambda: self.answers() == [ANSWER])
        # Fields of other kinds than the page writes do no harm.
        value["conversations"][0]["title"] = {"toString": 1}
        value["conversations"][0]["messages"] += [None, 5, {"role": "root", "content": "x"}, {"role": "assistant", "content": 7, "calls": [3]}]
        path.write_text(json.dumps(value))
        self.one("#import-file").send_keys(str(path))
        self.wait(lambda: "was imported" in self.one("#notice").text)
        self.assertEqual(len(self.all(".message")), 3)
        path.write_text("<html>")
        self.one("#import-file").send_keys(str(path))
        self.wait(lambda: "not JSON" in self.one("#notice").text)

    def test_an_import_that_fills_the_storage(self):
        self.show(("user", "there"))
        conversations = [{"title": title, "messages": [{"role": "user", "content": title * size}]} for title, size in (("A", 9), ("B", 6000000), ("C", 9))]
        path = pathlib.Path(self.folder.name, "large.txt")
        path.write_text(json.dumps({"format": "tessera-conversations", "conversations": conversations}))
        self.one("#import-file").send_keys(str(path))
        self.wait(lambda: "2 conversations were imported; the browser's storage has no room for 1 more of this file" in self.one("#notice").text)
        self.assertEqual(sorted(self.texts("#chat-list button")), ["A", "C", "Shown"])
        self.assertEqual(len(self.stored()), 3)

    def test_another_tab_makes_an_answer(self):
        questions = [{"role": "user", "content": f"Question {n}\n" * 5, "time": n} for n in range(20)]
        self.show(messages=[*questions, {"role": "assistant", "content": "One", "time": 20}])
        tab = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        other = self.browser.current_window_handle
        self.open(self.server.port, "/?other")

        def store(text, finish):
            self.browser.switch_to.window(other)
            self.browser.execute_script("""
                const chat = JSON.parse(localStorage.getItem('tessera.chat.x'));
                Object.assign(chat.messages.at(-1), {content: arguments[0], finish: arguments[1]});
                localStorage.setItem('tessera.chat.x', JSON.stringify(chat));
                localStorage.setItem('tessera.index', JSON.stringify([{id: 'x', title: 'Shown', updated: Date.now()}]));""", text, finish)
            self.browser.switch_to.window(tab)
            self.wait(lambda: self.answers() == [text])

        self.browser.switch_to.window(tab)
        self.browser.execute_script("document.querySelector('.message').mine = 1")
        self.tool(".message:nth-child(1)", "Edit")
        self.browser.execute_script("document.getElementById('scroll').scrollTop = 0")
        try:
            for text in ("One, two", "One, two, three"):
                store(text, "lost")
                self.assertEqual(len(self.all(".message.running")), 1)
                # The first puts the entry under another date.
                self.browser.execute_script("document.querySelector('.chat-entry').mine ??= arguments[0]", text)
            store("One, two, three.", "stop")
            self.assertEqual(self.all(".message.running"), [])
            self.assertEqual(self.browser.execute_script("return document.getElementById('scroll').scrollTop"), 0)
            self.assertEqual(len(self.all(".edit textarea")), 1)
            self.assertEqual(self.browser.execute_script("return [document.querySelector('.message').mine, document.querySelector('.chat-entry').mine]"), [1, "One, two"])
        finally:
            self.browser.switch_to.window(other)
            self.browser.close()
            self.browser.switch_to.window(tab)

    def test_to_the_end_examples_and_a_new_conversation(self):
        self.show(*[("user", f"Question {n}\n" * 5) for n in range(20)])
        end = self.one("#to-end")
        self.assertFalse(end.is_displayed())
        self.browser.execute_script("document.getElementById('scroll').scrollTop = 0")
        self.wait(end.is_displayed)
        end.click()
        self.wait(lambda: not end.is_displayed())
        self.assertLess(self.browser.execute_script("const e = document.getElementById('scroll'); return e.scrollHeight - e.scrollTop - e.clientHeight"), 2)
        webdriver.ActionChains(self.browser).key_down(Keys.CONTROL).key_down(Keys.SHIFT).send_keys("o").key_up(Keys.SHIFT).key_up(Keys.CONTROL).perform()
        self.wait(lambda: self.one("#empty").is_displayed())
        self.assertEqual(self.all(".message"), [])
        self.click(".example")
        self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "input")
        self.assertEqual(self.one("#input").get_attribute("value"), self.texts(".example span")[-1])
        self.menu("#open-settings")
        self.assertTrue(self.inside("#settings button[type=submit]"))

    def test_dark_and_phone(self):
        self.ask()
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        ground = "return getComputedStyle(document.body).backgroundColor"
        self.assertEqual(self.browser.execute_script(ground), "rgb(23, 23, 22)")
        self.shoot("dark")
        self.click("#menu summary")
        self.click("#theme")
        self.assertEqual(self.browser.execute_script(ground), "rgb(251, 250, 248)")
        self.browser.refresh()
        self.wait(lambda: self.answers() == [ANSWER])
        self.assertEqual(self.browser.execute_script(ground), "rgb(251, 250, 248)")
        for width in (320, 390):
            self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                         {"width": width, "height": 680, "deviceScaleFactor": 2, "mobile": True})
            try:
                self.check_no_sideways()
                self.assertFalse(self.one("#chats").is_displayed())
                # In one line with what they belong to, at its end.
                for button, beside in (("#menu summary", "#title"), ("#send", "#input")):
                    self.assertTrue(self.inside(button), button)
                    self.assertTrue(self.browser.execute_script("""
                        const [a, b] = [...arguments].map((s) => document.querySelector(s).getBoundingClientRect());
                        return a.left >= b.right && a.top < b.bottom && b.top < a.bottom""", button, beside), button)
                self.shoot(f"phone-{width}")
                self.click("#open-chats")
                self.wait(lambda: self.one("#chats").is_displayed())
                self.check_no_sideways()
                self.shoot(f"phone-{width}-chats")
                self.click("#close-chats")
                self.menu("#open-machine")
                self.wait(lambda: re.search(r"\d %", self.one("#machine").text), 10)
                self.check_no_sideways()
                self.shoot(f"phone-{width}-machine")
                self.click("#close-machine")
                self.menu("#open-settings")
                self.check_no_sideways()
                self.assertTrue(self.inside("#settings button[type=submit]"))
                self.shoot(f"phone-{width}-settings")
                self.browser.switch_to.active_element.send_keys(Keys.ESCAPE)
            finally:
                self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_keyboard_reaches_everything(self):
        self.ask()
        self.browser.switch_to.active_element.send_keys(Keys.TAB)
        self.browser.execute_script("document.getElementById('skip').focus()")
        seen = {"skip"}
        for _ in range(60):
            self.browser.switch_to.active_element.send_keys(Keys.TAB)
            focused = self.browser.execute_script("""
                const e = document.activeElement;
                // The message field's is around its box.
                const seen = [e, ...(e.id === 'input' ? [e.parentElement] : [])].some((e) => getComputedStyle(e).outlineStyle !== 'none');
                return [e.id || e.getAttribute('aria-label') || e.textContent.trim(), e.matches(':focus-visible') && seen, e.tagName]""")
            if focused[0] in ("skip", "") or focused[2] == "BODY":
                break
            self.assertTrue(focused[1], f"focus cannot be seen on {focused}")
            seen.add(focused[0])
        self.assertGreater(float(self.browser.execute_script(
            "return getComputedStyle(document.querySelector('.message:last-child .tools')).opacity")), .9)
        for name in ("More", "new-chat", "input", "send", "Copy", "Edit", "Regenerate", "Delete", "import", QUESTION):
            self.assertIn(name, seen)
        unnamed = self.browser.execute_script("""
            return [...document.querySelectorAll('button, input, textarea, select, progress, meter')].filter(e =>
                !e.textContent.trim() && !e.labels?.length && !e.getAttribute('aria-label') && !e.hidden).map(e => e.outerHTML)""")
        self.assertEqual(unnamed, [])

    def test_machine(self):
        self.menu("#open-machine")
        self.wait(lambda: "Tokens generated" in self.one("#machine").text, 10)
        self.ask()
        # At the end the rates stay what they were, and say so.
        self.wait(lambda: "idle; the last rate" in self.one(".graph:nth-child(1)").text, 10)
        self.assertRegex(self.one(".graph:nth-child(1) .value").text, r"^[1-9][\d,.]* tokens/s$")
        self.assertRegex(self.one(".graph:nth-child(1) svg").get_attribute("aria-label"), "^Generated in the last minute: [1-9].*idle")
        self.assertNotEqual(self.one(".graph:nth-child(1) .line").get_attribute("d"), "")
        self.assertRegex(self.one("#machine").text, r"Tokens generated\s+[1-9]")
        self.assertIn("layers 0 to ", self.one("#machine").text)
        self.shoot("machine")
        self.click("#close-machine")
        self.assertFalse(self.one("#machine").is_displayed())

    def test_settings_of_one_conversation(self):
        self.menu("#open-settings")
        self.click("#set-own")
        self.click(".more summary")
        fault = self.one("#settings .fault")
        for field, text, said in (("temperature", "11", "Temperature: enter a number from 0 to 10"), ("extra", "{", "this is not JSON"),
                                  ("extra", "[1]", "enter an object"), ("extra", '{"messages": []}', "messages is set by the page")):
            self.one(f"#set-{field}").clear()
            self.one(f"#set-{field}").send_keys(text)
            self.click("#settings button[type=submit]")
            self.assertIn(said, fault.text)
            self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), f"set-{field}")
            self.assertEqual(self.one(f"#set-{field}").get_attribute("aria-invalid"), "true")
            self.one(f"#set-{field}").clear()
        self.one("#set-stop").send_keys(" six\n\\nend")
        self.one("#set-extra").send_keys('{"logit_bias": {}, "max_tokens": 50}')
        self.one("#set-max_tokens").send_keys("4")
        self.click("#settings button[type=submit]")
        self.assertTrue(self.one("#own").is_displayed())
        # The further fields override the others.
        self.assertEqual(self.ask(), "un, deux, trois, quatre, cinq,")
        self.browser.refresh()
        self.wait(lambda: self.one("#own").is_displayed() and self.one("#model").text)
        self.menu("#open-settings")
        self.assertTrue(self.one("#set-own").is_selected())
        self.assertEqual(self.one("#set-stop").get_attribute("value"), " six\n\\nend")
        self.assertTrue(self.one(".more").get_attribute("open"))
        self.click("#set-all")
        self.assertEqual([self.one(f"#set-{name}").get_attribute("value") for name in ("stop", "extra", "max_tokens")], ["", "", ""])
        self.browser.switch_to.active_element.send_keys(Keys.ESCAPE)
        # Others have those of all.
        self.click("#new-chat")
        self.assertFalse(self.one("#own").is_displayed())
        self.assertEqual(self.ask(), ANSWER)
        fields = self.browser.execute_async_script("""
            const [done] = arguments;
            import('./sampling.js').then(({clean_sampling, request_fields}) => done([
                request_fields(clean_sampling(null), true),
                request_fields(clean_sampling({temperature: '1', top_k: 5, stop: ['a', 3, ''], samplers: 'x', extra: '{"n": 2}', thinking: 'on'}), true),
                request_fields(clean_sampling({frequency_penalty: -1, samplers: ['top_k'], thinking: 'off', extra: '{"frequency_penalty": 1}'}), false),
            ])).catch((error) => done(String(error)));""")
        self.assertEqual(fields, [{}, {"top_k": 5, "stop": ["a"], "chat_template_kwargs": {"enable_thinking": True}},
                                  {"frequency_penalty": 1, "samplers": ["top_k"]}])

    def test_context_that_is_full_is_explained(self):
        self.send_long("word " * 20000)
        self.wait(lambda: self.all(".notice.error"))
        self.assertIn("longer than the model's context", self.one(".notice.error").text)
        self.assertIn("--ctx-size", self.one(".notice.error").text)
        self.browser.get_log("browser")  # Chromium notes the status 400

    def send_long(self, text):
        self.browser.execute_script("arguments[0].value = arguments[1]", self.one("#input"), text)
        self.click("#send")


class Errors(Page):
    def test_key(self):
        with RunningServer("--api-key", "alpha") as server:
            self.open(server.port)
            self.wait(lambda: "asks for a key" in self.one("#banner").text)
            self.send(QUESTION)
            self.wait(lambda: self.one("#settings").get_attribute("open"))
            self.assertIn("key", self.one("#settings .notice").text)
            self.assertIn("asks for a key", self.one(".notice.error").text)
            self.shoot("key")
            self.assertEqual(self.browser.switch_to.active_element.get_attribute("id"), "set-key")
            self.browser.switch_to.active_element.send_keys("alpha", Keys.ENTER)
            self.wait(lambda: self.answers() == [ANSWER] and self.ended())
            self.assertEqual(self.browser.execute_script("return [localStorage['tessera.key'] ?? null, sessionStorage['tessera.key']]"),
                             [None, '"alpha"'])
            self.browser.refresh()
            self.wait(lambda: self.one("#model").text.startswith("demo-"))

    def test_server_that_has_gone_and_comes_back(self):
        with RunningServer() as server:
            port = server.port
            self.open(port)
            self.wait(lambda: self.one("#model").text.startswith("demo-"))
        self.send(QUESTION)
        self.wait(lambda: self.all(".notice.error"))
        self.assertIn("does not answer", self.one(".notice.error").text)
        self.assertEqual(self.texts(".message.user .body"), [QUESTION])
        self.shoot("error")
        with RunningServer("--port", str(port)):
            self.click(".notice.error button", "Try again")
            self.wait(lambda: self.answers() == [ANSWER] and self.ended())

    def test_server_that_ends_in_the_middle(self):
        with PretendServer() as server:
            server.state = "cut"
            self.open(server.port)
            self.wait(lambda: self.one("#model").text == "thinker")
            self.send("Is it there?")
            self.wait(lambda: self.all(".notice.error"))
            self.assertIn("connection was lost", self.one(".notice.error").text)
            self.assertEqual(self.answers(), ["It is."])
            self.assertEqual(self.texts(".notice.error button"), ["Continue", "Regenerate"])
            self.shoot("lost")
            server.state = "ready"
            self.click(".notice.error button", "Continue")
            # The same answer goes on.
            self.wait(lambda: self.answers() == ["It is.It is."] and self.ended())
            self.assertEqual(server.asked["messages"], [{"role": "user", "content": "Is it there?"},
                                                        {"role": "assistant", "content": "It is.", "reasoning_content": "Let me see."}])
            self.assertEqual((server.asked["continue_final_message"], server.asked["add_generation_prompt"]), (True, False))
            self.assertEqual(len(self.all(".message")), 2)

    def test_stop_by_key_and_button_keeps_what_came(self):
        with PretendServer() as server:
            server.state = "endless"
            self.open(server.port)
            self.wait(lambda: self.one("#model").text == "thinker")  # before, keys may reach a page without its script
            for stop in (lambda: self.one("#input").send_keys(Keys.ESCAPE), lambda: self.click("#stop")):
                self.send("Go on.")
                self.wait(lambda: self.answers() and self.answers()[-1].startswith("It is. on and on"))
                stop()
                self.wait(self.ended)
                self.assertIn("Stopped.", self.texts(".message.assistant")[-1])
                self.assertRegex(self.answers()[-1], "^It is. on and on")
                self.assertTrue(server.left.wait(30), "the connection of the stopped answer was not closed")
                self.click("#new-chat")

    def test_a_connection_that_was_lost_without_a_word(self):
        with PretendServer() as server:
            server.state = "silent"
            self.open(server.port)
            self.wait(lambda: "does not answer" in self.one("#banner").text)
            server.state = "ready"
            self.wait(lambda: self.one("#model").text == "thinker")

    def test_prefix_and_no_page(self):
        with RunningServer("--api-prefix", "/ai") as server:
            self.open(server.port, "/ai")
            self.wait(lambda: self.one("#model").text.startswith("demo-"))
            self.assertEqual(self.ask(), ANSWER)
            self.assertEqual(server.request("GET", "/")[0], 404)
            self.assertEqual(server.request("GET", "/aix")[0], 404)
        with RunningServer("--no-webui") as server:
            status, text = server.request("GET", "/")
            self.assertEqual((status, "without its chat page" in str(text)), (200, True))
            self.assertEqual(server.request("GET", "/app.js")[0], 404)

    def test_a_busy_or_loading_server_and_answers_that_think(self):
        with PretendServer() as server:
            self.open(server.port)
            server.state = "loading"
            self.browser.refresh()
            self.wait(lambda: "The model is being loaded: 42 %" in self.one("#banner").text)
            self.send("Is it there?")
            self.wait(lambda: "42 %" in self.texts(".prompt-progress")[-1])
            self.shoot("loading")
            server.state = "busy"
            self.wait(lambda: "no room for another request" in self.texts(".prompt-progress")[-1])
            self.shoot("busy")
            server.state = "ready"
            self.browser.execute_script("""
                window.seen = new Set();
                new MutationObserver(() => {
                    for (const e of document.querySelectorAll('.message.assistant .body > .markdown')) window.seen.add(e.innerText.trim());
                }).observe(document.getElementById('messages'), {childList: true, subtree: true, characterData: true});""")
            self.click(".message button", "Try now")
            self.wait(lambda: self.all(".call") and self.ended())
            self.assertIn("It", self.browser.execute_script("return [...window.seen]"))
            self.assertRegex(self.one(".reasoning summary").text, r"^Reasoned for \d")
            self.assertEqual(self.texts(".reasoning .markdown"), [""])
            self.click(".reasoning summary")
            self.wait(lambda: self.texts(".reasoning .markdown") == ["Let me see."])
            self.assertEqual(self.texts(".message.assistant .body > .markdown"), ["It is."])
            self.assertEqual(self.texts(".call code")[0], "look")
            self.assertEqual(json.loads(self.texts(".call pre")[0]), {"at": ["door", 1]})
            self.assertIn("prompt 10 tokens, 80 % of it cached", self.texts(".message.assistant .stats")[0])
            self.assertEqual(self.one("#context-text").text, "25 of 100 tokens")
            self.assertEqual(server.asked["messages"], [{"role": "user", "content": "Is it there?"}])
            self.assertNotIn("chat_template_kwargs", server.asked)
            self.menu("#open-settings")
            self.one("#set-thinking").send_keys("off")
            self.click("#settings button[type=submit]")
            self.send("And now?")
            self.wait(lambda: len(self.all(".call")) == 2 and self.ended())
            self.assertEqual(server.asked["chat_template_kwargs"], {"enable_thinking": False})
            self.assertEqual([m["role"] for m in server.asked["messages"]], ["user", "assistant", "user"])
            # A new version that comes to nothing leaves the old one.
            server.state = "busy"
            before = self.texts(".message.assistant")
            self.tool(".message:nth-child(4)", "Regenerate")
            self.wait(lambda: "no room for another request" in self.texts(".prompt-progress")[-1])
            self.one("#input").send_keys(Keys.ESCAPE)
            self.wait(lambda: self.ended() and self.texts(".message.assistant") == before)
            server.state = "ready"
            self.menu("#open-machine")
            self.wait(lambda: "Test card" in self.one("#machine").text)
            self.assertIn("0–1", self.one(".layers").get_attribute("textContent"))
            # Three devices of attention, and the weights of a layer on two.
            self.assertEqual(len(self.all(".plan rect")), 5)
            self.assertIn("experts on cpu0\n3 GiB on cpu0\n1 GiB on gpu0", self.one(".plan g:last-child title").get_attribute("textContent"))
            heights = [float(rect.get_attribute("height")) for rect in self.all(".plan g:last-child rect")]
            self.assertAlmostEqual(heights[1], 3 * heights[2], places=1)
            self.shoot("machine-devices")


if __name__ == "__main__":
    running_server.main()
