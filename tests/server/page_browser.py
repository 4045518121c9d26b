"""The chat page in headless Chromium: what its tests have in common. With TSR_SCREENSHOTS=FOLDER they also draw what they see."""

import atexit
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from selenium import webdriver
from selenium.common.exceptions import JavascriptException, StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

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
    browser = folder = None  # of all tests

    @classmethod
    def setUpClass(cls):
        if Page.browser:
            return
        Page.folder = tempfile.TemporaryDirectory()
        Page.browser = chromium(Page.folder.name)
        atexit.register(Page.folder.cleanup)
        atexit.register(Page.browser.quit)

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
    server = None  # of all tests

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not WithAServer.server:
            WithAServer.server = RunningServer("--parallel", "4").__enter__()
            atexit.register(WithAServer.server.__exit__)

    def setUp(self):
        super().setUp()
        self.browser.get_log("browser")  # of earlier tests, in which servers fail
        self.open(self.server.port)
        self.browser.execute_script("localStorage.clear(); sessionStorage.clear()")
        self.open(self.server.port, "/?new")
        self.wait(lambda: self.one("#model").text.startswith("demo-"))

    def tearDown(self):
        self.check_console()

    def show(self, *messages, **fields):
        """A conversation with these messages, as the page stores them."""
        chat = {"id": "x", "title": "Shown", "messages": [{"role": role, "content": text} for role, text in messages], **fields}
        self.browser.execute_script("""
            localStorage.setItem('tessera.chat.x', arguments[0]);
            localStorage.setItem('tessera.index', JSON.stringify([{id: 'x', title: 'Shown', updated: 1}]));""", json.dumps(chat))
        self.open(self.server.port, "/?shown#x")
        self.wait(lambda: self.all(".message"))

    def inside(self, selector):
        """All of it is in the window, and nothing lies on it."""
        return self.browser.execute_script("""
            const e = document.querySelector(arguments[0]), r = e.getBoundingClientRect();
            return r.width > 0 && r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight && r.right <= innerWidth &&
                e.contains(document.elementFromPoint((r.left + r.right) / 2, (r.top + r.bottom) / 2));""", selector)
