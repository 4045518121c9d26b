#!/usr/bin/env python3
"""What a model wrote can be sent back: of every template, answers whole, cut anywhere and with models' usual mistakes are read, sent back
with results, and written.

    sent_back_test.py RENDER_CHAT FOLDER [--every]
FOLDER: *.jinja of others; where it does not exist, the built-in templates and those below alone. --every: cut at each character."""
import argparse
import json
import sys
from pathlib import Path

from family_templates import FAMILIES
from jinja_reference import Renderer

# Templates of our own, each with a demand that published ones have.
OWN = {
    "nine letters": """{{ tools | tojson if tools }}{% for m in messages %}{% if m.role == 'user' %}[INST]{{ m.content }}[/INST]{% elif m.role == 'tool' %}{% if m.tool_call_id | length != 9 %}{{ raise_exception('an id of nine letters, please') }}{% endif %}[TOOL_RESULTS]{"content": {{ m.content | tojson }}, "call_id": "{{ m.tool_call_id }}"}[/TOOL_RESULTS]{% elif m.tool_calls %}[TOOL_CALLS][{% for c in m.tool_calls %}{% if not c.id or c.id | length != 9 %}{{ raise_exception('an id of nine letters, please') }}{% endif %}{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}, "id": "{{ c.id }}"}{% if not loop.last %}, {% endif %}{% endfor %}]{{ eos_token }}{% elif m.role == 'assistant' %}{% if not m.content %}{{ raise_exception('an answer without anything') }}{% endif %}{{ m.content + eos_token }}{% else %}{{ m.content }}{% endif %}{% endfor %}""",
    "one call": """{{ tools | tojson if tools }}{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}<|assistant|>
{"name": "{{ m.tool_calls[0].function.name }}", "parameters": {{ m.tool_calls[0].function.arguments | tojson }}}<|eot|>{% else %}<|{{ m.role }}|>
{{ m.content }}<|eot|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}""",
    "content or thinking": """{{ tools | tojson if tools }}{% for m in messages %}{% if m.tool_calls %}{% if m.content and m.thinking %}{{ raise_exception('one of both') }}{% endif %}<|im_start|>assistant
{% if m.thinking %}<think>
{{ m.thinking }}
</think>

{% endif %}{{ m.content or '' }}{% for c in m.tool_calls %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% else %}<|im_start|>{{ m.role }}
{% if m.thinking %}<think>
{{ m.thinking }}
</think>

{% endif %}{{ m.content }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}""",
    "items": """{% for t in tools or [] %}{{ t.function.name + ': ' + t.function.description }}
{% for k, v in t.function.parameters.properties.items() %}{{ k }}: {{ v.type | upper }}
{% endfor %}{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}
{% for c in m.tool_calls or [] %}<tool_call>
<function={{ c.function.name }}>
{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>
{{ v }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}{{ m.content or '' }}<|im_end|>
{% endfor %}<|im_start|>assistant
"""}

OWN |= {name: program for name, (program, _) in FAMILIES.items()}

TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "Name"}, "days": {"type": "integer", "description": "How many"}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "clock", "description": "The time", "parameters": {"type": "object", "properties": {}}}}]
LACKING = [{"type": "function", "function": {"name": "weather"}}, {"type": "function", "function": {"name": "clock", "description": None, "parameters": None}},
           {"type": "function", "function": {"name": "third", "description": "d", "parameters": {"type": "object", "properties": {"x": {}, "y": {"enum": ["a"]}}}}},
           {"type": "function", "function": {"name": "fourth", "parameters": {}}}]
QUESTION = {"role": "user", "content": "How is it?"}


def call(name, arguments, number):
    return {"id": f"call_{number:024d}", "type": "function", "function": {"name": name, "arguments": arguments}}


ANSWERS = {
    "text": {"content": "It is warm."},
    "one call": {"content": "", "tool_calls": [call("weather", '{"city": "Z\u00fcrich", "days": 2}', 0)]},
    "two calls": {"content": "", "tool_calls": [call("weather", '{"city": "Bern"}', 0), call("clock", "{}", 1)]},
    "all": {"content": "I look.", "reasoning_content": "First the weather.", "tool_calls": [call("weather", '{"city": "Bern"}', 0)]},
}
# What is read of FAMILIES exactly as it was written.
NESTED = {"content": "", "tool_calls": [call("weather", '{"city": "x < y", "days": 3, "list": ["a", "b c"], "object": {"k": [1.5, true]}, "text": "a\\nb"}', 0), call("clock", "{}", 1)]}
# What models write instead: not JSON, not closed, a text, a list, nothing.
ARGUMENTS = ['{"city": "Z\u00fcrich', '{"city": Bern}', "Bern", '["Bern"]', '"Bern"', "null", ""]


# Templates that cannot write tools or calls; --chat-template chooses another one for these models.
WITHOUT_TOOLS = {"deepseek2", "deepseek-v2.5", "deepseek3", "deepseek-coder", "chatml", "qwen2", "llama3", "kimi-k2", "HuggingFaceTB-SmolLM3-3B",
                 "google-gemma-2-2b-it", "llama-cpp-rwkv-world", "microsoft-Phi-3.5-mini-instruct"}


class Template:
    def __init__(self, ask, name):
        self.ask, self.name, self.failures, self.sent = ask, name, [], 0

    def write(self, messages, tools=TOOLS, prompt=True, **more):
        return self.ask(messages=messages, tools=tools, prompt=prompt, thinking=None, bos="<bos>", eos="<eos>", rewrite=True, **more)

    def text_of(self, answer):
        """What a model of this template writes to answer so; None where that cannot be seen."""
        begin = self.write([QUESTION]).get("text")
        whole = self.write([QUESTION, {"role": "assistant", **answer}], prompt=False).get("text")
        if begin is None or whole is None:
            return None
        if not whole.startswith(begin):  # the prompt opens or closes reasoning that history leaves out
            begin = self.write([QUESTION], prompt=False).get("text", "")
        return whole[len(begin):] if whole.startswith(begin) else None

    def check_family(self, end):
        """The syntax is found, and answers are read as what they were written from."""
        found = self.write([QUESTION]).get("syntax_name")
        if found != self.name:
            self.failures.append((self.name, "the syntax of calls", found, ""))
        for what, answer in {**ANSWERS, "nested": NESTED}.items():
            text = self.text_of(answer).removesuffix(end)
            # Calls of a format that has one a message are written as several of them.
            calls = answer.get("tool_calls", [])[:1 if end and end in text else None]
            read = self.write([QUESTION], parse=text.split(end)[0] if end else text).get("read") or {"calls": []}
            got = [(one["name"], json.loads(one["arguments"])) for one in read["calls"]]
            if got != [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in calls] or read.get("content") != answer["content"]:
                self.failures.append((self.name, what, "is read as another answer", text, read))
            if "reasoning_content" in answer and answer["reasoning_content"] in text and read.get("reasoning") != answer["reasoning_content"]:
                self.failures.append((self.name, what, "has other reasoning", text, read))

    def send_back(self, what, text):
        """Reads the text as an answer, and writes the next turn."""
        read = self.write([QUESTION], parse=text).get("read")
        if read is None:
            self.failures.append((self.name, what, "not read", text))
            return
        calls = [call(one["name"], one["arguments"], i) for i, one in enumerate(read["calls"])]
        answer = {"role": "assistant", "content": read["content"], "reasoning_content": read["reasoning"], "tool_calls": calls}
        results = [{"role": "tool", "content": f"result {i}", "tool_call_id": one["id"]} for i, one in enumerate(calls)]
        self.expect(what, [QUESTION, answer] + (results or [{"role": "user", "content": "And now?"}]), [f"result {i}" for i in range(len(results))])

    def expect(self, what, messages, words=(), tools=TOOLS):
        got = self.write(messages, tools)
        self.sent += 1
        if "text" not in got:
            self.failures.append((self.name, what, got["error"], json.dumps(messages, ensure_ascii=False)))
        elif any(word not in got["text"] for word in words):
            self.failures.append((self.name, what, f"lacks one of {words}", got["text"]))

    def check(self, every):
        asked, called = self.write([QUESTION]), self.write([QUESTION, {"role": "assistant", **ANSWERS["one call"]}], prompt=False)
        if "text" not in asked or "text" not in called:
            if self.name not in WITHOUT_TOOLS:
                self.failures.append((self.name, "tools and calls", asked.get("error"), called.get("error")))
            return "no tools or no calls"
        if self.name in FAMILIES:
            self.check_family(FAMILIES[self.name][1])
        for what, answer in ANSWERS.items():
            text = self.text_of(answer)
            if text is None:
                if self.name in OWN:
                    self.failures.append((self.name, what, "what its model writes cannot be seen", ""))
                continue
            for cut in range(1, len(text) + 1) if every else {*range(1, len(text), 1 + len(text) // 25), len(text)}:
                self.send_back(f"{what}, cut at {cut}", text[:cut])
        for arguments in ARGUMENTS:
            bad = call("weather", arguments, 0)
            self.expect(f"arguments {arguments}", [QUESTION, {"role": "assistant", "content": "", "tool_calls": [bad]},
                                                   {"role": "tool", "content": "RESULT", "tool_call_id": bad["id"]}], ["RESULT"])
        both = ANSWERS["two calls"]["tool_calls"]
        for results in ([0, 1], [1, 0]):
            self.expect(f"results {results}", [QUESTION, {"role": "assistant", "content": "", "tool_calls": both}] +
                        [{"role": "tool", "content": f"RESULT{i}", "tool_call_id": both[i]["id"]} for i in results], ["Bern", "RESULT0", "RESULT1"])
        for tools in [LACKING] + [[one] for one in LACKING]:
            self.expect("tools that lack parts", [QUESTION], [tools[0]["function"]["name"]], tools)
        return f"{self.sent} sent back"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("render_chat")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", action="store_true")
    given = parser.parse_args()
    sources = [("name", name, name) for name in Renderer(given.render_chat).ask(names=True)["names"]]
    sources += [("program", name, text) for name, text in OWN.items()]
    sources += [("program", path.stem, path.read_text()) for path in sorted(given.folder.glob("*.jinja"))]
    failures, checked = [], 0
    for kind, name, text in sources:
        ask = Renderer(given.render_chat).ask
        ask(**{kind: text})
        template = Template(ask, name)
        outcome = template.check(given.every)
        failures += template.failures
        checked += template.sent > 0
        print(f"{name}: {outcome}, {len(template.failures)} failed")
    for failure in failures[:20]:
        print("FAILED:", *failure, sep="\n  ")
    if checked < 10:
        sys.exit(f"only {checked} templates were checked")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
