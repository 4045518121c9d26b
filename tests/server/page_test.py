"""The chat page in headless Chromium. With TSR_SCREENSHOTS=FOLDER it also draws what it sees there."""

import http.server
import itertools
import json
import os
import pathlib
import re
import shutil
import tempfile
import threading
import time
import unittest

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, StaleElementReferenceException, TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import running_server
from running_server import RunningServer

QUESTION = "Count from 1 to 10 in French."
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"


def chromium(folder):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    # Tests run as root in containers, where Chromium's sandbox cannot start; it shows this server's pages alone.
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,800",
                 "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": folder, "download.prompt_for_download": False})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = chromium(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.set_window_size(1280, 800)
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]})

    def open(self, port, path="/"):
        self.browser.get(f"http://127.0.0.1:{port}{path}")

    def wait(self, test, seconds=60, what=""):
        # A page that is being loaded again has none of its elements for a moment.
        ignored = (JavascriptException, StaleElementReferenceException)
        return WebDriverWait(self.browser, seconds, 0.05, ignored).until(lambda _: test(), what)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector):
        return self.browser.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.trim())", selector)

    def click(self, selector, text=None):
        def found():
            return [e for e in self.all(selector) if e.is_displayed() and (text is None or e.text == text)]
        self.wait(found, 20, f"{selector} {text}")[-1].click()

    def tool(self, message, label):
        """A picture below a message, which is seen only under the pointer."""
        self.wait(lambda: self.all(f"{message} .foot [aria-label='{label}']"), 20, label)[-1].click()

    def menu(self, selector):
        self.click("#menu summary")
        self.click(selector)

    def send(self, text):
        self.one("#input").send_keys(text, Keys.ENTER)

    def ended(self):
        return not self.one("#stop").is_displayed() and not self.all(".message.running")

    def answers(self):
        return self.texts(".message.assistant .body > .markdown")

    def ask(self, text=QUESTION):
        count = len(self.all(".message.assistant"))
        self.send(text)
        self.wait(lambda: len(self.all(".message.assistant")) > count and self.ended(), 120, text)
        return self.answers()[-1]

    def settings(self, **fields):
        self.menu("#open-settings")
        for name, value in fields.items():
            field = self.one(f"#set-{name}")
            field.clear()
            field.send_keys(value)
        self.click("#settings button[type=submit]")

    def shoot(self, name):
        folder = os.environ.get("TSR_SCREENSHOTS")
        if folder:
            self.browser.save_screenshot(os.path.join(folder, name + ".png"))

    def stored(self):
        return self.browser.execute_script(
            "return Object.fromEntries(Object.entries(localStorage).filter(([k]) => k.startsWith('tessera.chat.')))")

    def check_console(self, allowed=()):
        """No script has failed and the policy has stopped nothing."""
        bad = [entry["message"] for entry in self.browser.get_log("browser")
               if entry["level"] == "SEVERE" and not any(re.search(p, entry["message"]) for p in allowed)]
        self.assertEqual(bad, [])

    def check_no_sideways(self):
        width, whole = self.browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
        self.assertLessEqual(whole, width)

    def download(self, pattern):
        def found():
            return [p for p in pathlib.Path(self.folder.name).glob(pattern) if p.stat().st_size > 0]
        path = self.wait(found, 20, pattern)[0]
        text = path.read_text()
        path.unlink()
        return text


class WithAServer(Page):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = RunningServer("--parallel", "4").__enter__()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.server.__exit__()

    def setUp(self):
        super().setUp()
        self.open(self.server.port)
        self.browser.execute_script("localStorage.clear(); sessionStorage.clear()")
        self.open(self.server.port, "/?new")
        self.wait(lambda: self.one("#model").text.startswith("demo-"))

    def tearDown(self):
        self.check_console()

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
                const bad = [], length = 20000;
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

    def show(self, *messages, **fields):
        """A conversation with these messages, as the page stores them."""
        chat = {"id": "x", "title": "Shown", "messages": [{"role": role, "content": text} for role, text in messages], **fields}
        self.browser.execute_script("""
            localStorage.setItem('tessera.chat.x', arguments[0]);
            localStorage.setItem('tessera.index', JSON.stringify([{id: 'x', title: 'Shown', updated: 1}]));""", json.dumps(chat))
        self.open(self.server.port, "/?shown#x")
        self.wait(lambda: self.all(".message"))

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

    def inside(self, selector):
        """All of it is in the window, and nothing lies on it."""
        return self.browser.execute_script("""
            const e = document.querySelector(arguments[0]), r = e.getBoundingClientRect();
            return r.width > 0 && r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight && r.right <= innerWidth &&
                e.contains(document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2));""", selector)

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
        """Of 50 kB, and of 200 kB of what opens formulas: the time of any other text of this length."""
        took = self.browser.execute_async_script(r"""
            const done = arguments[arguments.length - 1];
            import('./markdown.js').then(({MarkdownView}) => {
                const n = 50000, took = {};
                const of = (text) => text.repeat(n / text.length);
                for (const text of ['# ' + of(' ') + 'x', 'a|b\n| -' + of(' ') + 'x', of('*a '), of('['), of('`') + 'x', of('`` ` '), of('> '),
                                    of('- '), of('_a*'), 'http://' + of('.'), of('- a\n\n'), '``` ' + of(' ') + '`', of('**'), of('- - '),
                                    '$'.repeat(200000), '\\left('.repeat(10000), of('[a]('), of('[a](b) '), '$' + '\\left('.repeat(300) + '$', '$' + '{'.repeat(1900) + '$', of('$}$ '), of('\\('),
                                    of('\\[\n'), of('a \\[\n'), of('\\begin{align}\n'), of('$$a '), of('$$\n'), of('$a '), of('$x$ '),
                                    '$$' + '\\hat'.repeat(2000) + '$$', '$$x' + '_{a'.repeat(2000) + '}'.repeat(2000) + '$$',
                                    '$$' + '\\text{$'.repeat(1000) + '$$', '$$\\begin{matrix}' + '&'.repeat(9000) + '\\end{matrix}$$',
                                    of('[^a]: b\n'), of('[^1]'), '[^' + of('a'), of('&'), of('&amp;'), of('- [ ] a\n'), of('|$|x|$')]) {
                    const start = performance.now();
                    new MarkdownView(document.createElement('div')).set(text, true);
                    took[text.slice(0, 12)] = performance.now() - start;
                }
                done(took);
            }).catch((error) => done(String(error)));""")
        # One that were not linear would take minutes.
        self.assertLess(max(took.values()), 5000, took)

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
                self.wait(lambda: "tokens/s" in self.one("#machine").text, 10)
                self.check_no_sideways()
                self.shoot(f"phone-{width}-machine")
                self.click("#close-machine")
                self.menu("#open-settings")
                self.check_no_sideways()
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
        self.wait(lambda: "maximum" in self.one("#machine").text, 10)
        self.ask()
        self.wait(lambda: re.search(r"Tokens generated\s+[1-9]", self.one("#machine").text), 10)
        self.shoot("machine")
        self.click("#close-machine")
        self.assertFalse(self.one("#machine").is_displayed())

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
            self.assertIn("0–1", self.one(".layers").text)
            self.shoot("machine-devices")


class PretendServer:
    """What a server of a large reasoning model with two devices answers, in any state; its page is the real one."""

    def __enter__(self):
        self.state, self.asked = "ready", None
        self.left = threading.Event()  # The client of an endless answer has closed its connection.
        self.real = RunningServer().__enter__()
        self.files = threading.Lock()
        pretend = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def reply(self, status, body, kind="application/json", more=()):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in (("Content-Type", kind), ("Content-Length", str(len(data))), *more):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def loading(self):
                self.reply(503, {"error": {"message": "Loading model", "code": "loading"}, "progress": 0.42}, more=[("Retry-After", "1")])

            def do_GET(self):
                if self.path == "/health":
                    if pretend.state == "silent":
                        time.sleep(40)
                        return None
                    return self.loading() if pretend.state == "loading" else self.reply(200, {"status": "ok"})
                if self.path == "/v1/models":
                    return self.reply(200, {"data": [{"id": "thinker"}]})
                if self.path == "/props":
                    return self.reply(200, {"can_think": True, "default_generation_settings": {"n_ctx": 100, "params": {"temperature": 0.6}}})
                if self.path == "/metrics":
                    return self.reply(200, b"tessera_ready 1\ntessera_cache_usage_ratio 0.5\n", "text/plain")
                if self.path == "/tessera/machine":
                    gib = 1 << 30
                    return self.reply(200, {"devices": [
                        {"id": "cpu0", "name": "Test processor", "memory_bytes": 64 * gib, "weights_bytes": 30 * gib, "cache_bytes": 0, "work_bytes": gib, "mapped_bytes": 8 * gib},
                        {"id": "gpu0", "name": "Test card", "memory_bytes": 24 * gib, "weights_bytes": 12 * gib, "cache_bytes": 6 * gib, "work_bytes": gib, "mapped_bytes": 0}],
                        "layers": [{"layer": 0, "attention": "gpu0", "experts": None}, {"layer": 1, "attention": "gpu0", "experts": None},
                                   {"layer": 2, "attention": "gpu0", "experts": "cpu0"}]})
                with pretend.files:  # the headers are those of the last request
                    status, body = pretend.real.request("GET", self.path)
                    kind = pretend.real.headers["Content-Type"]
                self.reply(status, body, kind)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if pretend.state == "loading":
                    return self.loading()
                if pretend.state == "busy":
                    return self.reply(429, {"error": {"message": "full", "code": "queue_full"}}, more=[("Retry-After", "30")])
                pretend.asked = body
                pretend.left.clear()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                deltas = [{"role": "assistant", "content": ""}, {"reasoning_content": "Let me "}, {"reasoning_content": "see."},
                          {"content": "It "}, {"content": "is."}]
                if pretend.state == "endless":
                    deltas = itertools.chain(deltas, itertools.repeat({"content": " on and on"}))
                elif pretend.state != "cut":
                    deltas += [
                        {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "look", "arguments": ""}}]},
                        {"tool_calls": [{"index": 0, "function": {"arguments": "{\"at\": [\"do"}}]},
                        {"tool_calls": [{"index": 0, "function": {"arguments": "or\", 1]}"}}]}]
                try:
                    for delta in deltas:
                        # A comment, and an event in two writes.
                        text = "data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) + "\n\n"
                        self.wfile.write(b": waiting\n\n" + text[:9].encode())
                        self.wfile.flush()
                        time.sleep(0.05)
                        self.wfile.write(text[9:].encode())
                        time.sleep(0.05)
                except OSError:
                    pretend.left.set()
                    return
                if pretend.state == "cut":
                    return
                end = [{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
                       {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 15, "total_tokens": 25,
                                                 "prompt_tokens_details": {"cached_tokens": 8}}}]
                self.wfile.write("".join(f"data: {json.dumps(e)}\n\n" for e in end).encode() + b"data: [DONE]\n\n")

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
        self.real.__exit__()


if __name__ == "__main__":
    running_server.main()
