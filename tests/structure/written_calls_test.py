#!/usr/bin/env python3
"""written_calls_test.py RENDER_CHAT WALK MODEL FOLDER: calls as templates write them, which is how their models have learnt it, are ones that
answers may be held to. FOLDER: *.jinja of others; where it does not exist, the built-in templates and our own alone."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "text"))
import sent_back_test as sent_back
from jinja_reference import Renderer

RENDER, WALK, MODEL, FOLDER = sys.argv[1:5]
# Calls without a mark are held to a form only where they are demanded, and so are those behind text that has marks.
WITHOUT_MARK = {"llama3", "functionary-3.2", "channels", "muse"}
TEXT_HAS_MARKS = {"kimi-k3", "solar"}
# Of these models an answer has one call.
ONE_ALONE = {"gigachat", "gigachat-3.1"}
# The header of the answer and its reasoning, which stays free.
BEFORE = re.compile(r"(?s).*(</(seed:|mm:)?think>|<\|close\|>think<\|sep\|>)|\s*(<\|im_start\|>assistant|<｜Assistant｜>|<\|assistant\|>|<\|turn>model|<\|START_THINKING\|>.*<\|END_THINKING\|>)?")
# Marks of the end; a template may write content behind calls.
AFTER = re.compile(r"(I look\.|\|?(eo[mt]_id|im_end)\|?>|assistant|message|\[e~\[|\s|<[^<>]*>)*")


class Written(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.walk = subprocess.Popen([WALK, MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.walk.communicate)

    def held(self, **fields):
        self.walk.stdin.write(json.dumps(fields) + "\n")
        self.walk.stdin.flush()
        answer = json.loads(self.walk.stdout.readline())
        if "missing" in answer:
            self.skipTest(answer["missing"])
        return answer

    def test_calls_of_templates(self):
        sources = [("name", name, name) for name in Renderer(RENDER).ask(names=True)["names"]]
        sources += [("program", name, text) for name, text in sent_back.OWN.items()]
        sources += [("program", path.stem, path.read_text()) for path in sorted(pathlib.Path(FOLDER).glob("*.jinja"))]
        tools = [{"name": one["function"]["name"], "parameters": one["function"]["parameters"]} for one in sent_back.TOOLS]
        checked = 0
        for kind, name, text in sources:
            ask = Renderer(RENDER).ask
            ask(**{kind: text})
            template = sent_back.Template(ask, name)
            syntax = template.write([sent_back.QUESTION]).get("syntax_name")
            for what in ("one call", "two calls", "all"):
                said = template.text_of(sent_back.ANSWERS[what])
                if said is None or syntax in WITHOUT_MARK or (what == "all" and syntax in TEXT_HAS_MARKS) or (what == "two calls" and syntax in ONE_ALONE):
                    continue
                said = said[BEFORE.match(said).end():]
                with self.subTest(template=name, syntax=syntax, answer=what):
                    answer = self.held(syntax=syntax, tools=tools, said=[said], any=syntax not in TEXT_HAS_MARKS, several=True, special=True, walks=0, seed=1)
                    [rest] = answer.get("held", [answer.get("refused")])
                    self.assertTrue(rest in ("ok", "not over") or AFTER.fullmatch(rest), f"{said!r} is refused from here on: {rest!r}")
                    checked += 1
        self.assertGreater(checked, 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], warnings="ignore")
