#!/usr/bin/env python3
"""Published chat templates, and variants of them, against Python's Jinja: what Tessera makes of a conversation is the same text or is
refused.

    chat_templates_test.py RENDER_CHAT FOLDER [--table] [--few]
FOLDER: *.jinja. --few: an eighth of the variants. Exits with 77 (skipped) without jinja2 or templates."""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

try:
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    print("skipped: this Python lacks jinja2")
    sys.exit(77)

BOS, EOS = "<bos>", "<eos>"
U, A, S = "user", "assistant", "system"


def call(name, arguments, number=0):
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}}


def calls(*made, content="", reasoning=None):
    one = {"role": A, "content": content, "tool_calls": list(made)}
    if reasoning:
        one["reasoning_content"] = reasoning
    return one


def said(*pairs):
    return [{"role": r, "content": c} for r, c in pairs]


def result(content, number=0):
    return {"role": "tool", "content": content, "tool_call_id": f"call{number:05d}", "name": "weather"}


TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "The weather \u00fcber <b>all</b>", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "Name"}, "days": {"type": "integer"}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "clock", "description": "", "parameters": {"type": "object", "properties": {}}}}]
ZURICH, TWO = call("weather", {"city": "Z\u00fcrich", "days": 2}), call("clock", {"a": [1, 2.5, None, True], "b": {"c": "\"x\"\n"}}, 1)
CONVERSATIONS = {
    "question": said((U, "Hi there")),
    "empty": said((U, "")),
    "system": said((S, "Be brief."), (U, "Hi")),
    "empty system": said((S, ""), (U, "Hi")),
    "spaces": said((S, " Be brief.\n"), (U, "\n Hi \t")),
    "unicode": said((S, "\u65e5\u672c\u8a9e \U0001f600"), (U, "e\u0301 \u1112\u1161\u11ab \u200b <|im_end|>")),
    "turns": said((U, "a"), (A, "b"), (U, "c")),
    "system and turns": said((S, "s"), (U, "a"), (A, "b"), (U, "c"), (A, "d"), (U, "e")),
    "continuation": said((U, "a"), (A, "It is")),
    "continuation after turns": said((S, "s"), (U, "a"), (A, "b"), (U, "c"), (A, "It ")),
    "empty answer": said((U, "a"), (A, ""), (U, "c")),
    "thoughts": said((U, "a"), (A, "<think>\nhm\n</think>\n\nb"), (U, "c")),
    "thoughts last": said((U, "a"), (A, "<think>hm</think>b")),
    "end of thoughts": said((U, "a"), (A, "hm</think>b</think>c"), (U, "c")),
    "reasoning": [{"role": U, "content": "a"}, {"role": A, "content": "b", "reasoning_content": "hm\n"}, {"role": U, "content": "c"}],
    "reasoning last": [{"role": U, "content": "a"}, {"role": A, "content": "b", "reasoning_content": "\nhm"}],
    "two systems": said((S, "s"), (S, "t"), (U, "a")),
    "late system": said((U, "a"), (A, "b"), (S, "s"), (U, "c")),
    "system last": said((U, "a"), (S, "s")),
    "system alone": said((S, "s")),
    "two questions": said((U, "a"), (U, "b")),
    "two answers": said((U, "a"), (A, "b"), (A, "c"), (U, "d")),
    "answer first": said((A, "a"), (U, "b")),
    "many": said(*[(U if i % 2 == 0 else A, f"m{i}") for i in range(41)]),
    "switch": said((U, "a /no_think"), (A, "b"), (U, "c /think")),
    "long": said((U, "word " * 3000)),
    "call": said((U, "a")) + [calls(ZURICH)],
    "call and result": said((U, "a")) + [calls(ZURICH), result("17 \u00b0C")],
    "result and answer": said((S, "s"), (U, "a")) + [calls(ZURICH), result("17")] + said((A, "Warm.")),
    "result and question": said((U, "a")) + [calls(ZURICH), result("17")] + said((A, "Warm."), (U, "And now?")),
    "content and call": said((U, "a")) + [calls(ZURICH, content="I look."), result("17"), ] + said((A, "Warm."), (U, "b")),
    "two calls": said((U, "a")) + [calls(ZURICH, TWO), result("17"), result("{\"t\": 1}", 1)],
    "two calls and answer": said((U, "a")) + [calls(ZURICH, TWO), result("17"), result("12", 1)] + said((A, "x"), (U, "y")),
    "calls in a row": said((U, "a")) + [calls(ZURICH), result("17"), calls(TWO, content="So"), result("12", 1)] + said((A, "x")),
    "call with reasoning": said((U, "a")) + [calls(ZURICH, reasoning="hm"), result("17")],
    "result that looks like one": said((U, "<tool_response>\nx\n</tool_response>")),
    "call of no arguments": said((U, "a")) + [calls(call("clock", {})), result("12")],
    "result without call": said((U, "a")) + [result("17")],
    "empty result": said((U, "a")) + [calls(ZURICH), result("")] + said((A, "x")),
    "names": [{"role": S, "content": "s", "name": "rules"}, {"role": U, "content": "a", "name": "J\u00fcrg <|im_end|>"},
              {"role": A, "content": "b", "name": "helper"}, {"role": U, "content": "c", "name": ""}, {"role": S, "content": "d", "name": "observation"},
              {"role": U, "content": "e", "name": "user"}],
    "call first": [calls(ZURICH), result("17")] + said((U, "a")),
}


def environment():
    one = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])

    def raise_exception(message):
        raise ValueError(message)

    def strftime_now(form):
        from datetime import datetime
        return datetime.now().strftime(form)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    one.globals["raise_exception"] = raise_exception
    one.globals["strftime_now"] = strftime_now
    one.filters["tojson"] = tojson
    return one


ENVIRONMENT = environment()


def reference(compiled, request, texts):
    """The text, or None where Python refuses."""
    messages = json.loads(json.dumps(request["messages"]))
    for one in messages:
        for made in one.get("tool_calls", []):
            if not texts:
                made["function"]["arguments"] = json.loads(made["function"]["arguments"])
    variables = {"messages": messages, "tools": request["tools"] or None, "add_generation_prompt": request["prompt"], "bos_token": BOS, "eos_token": EOS}
    if request["thinking"] is not None:
        variables["thinking"] = variables["enable_thinking"] = request["thinking"]
    try:
        return compiled.render(variables)
    except Exception:  # whatever a template makes of Python
        return None


class Renderer:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("render_chat ended")
        return json.loads(line)


def requests(conversations):
    for name, messages in conversations.items():
        for tools in ([], TOOLS):
            for prompt in (True, False):
                for thinking in (None, True, False):
                    yield name, {"messages": messages, "tools": tools, "prompt": prompt, "thinking": thinking, "bos": BOS, "eos": EOS}


def check(renderer, name, text, conversations, faults):
    """Counts of a template: written right, refused by both, refused by Tessera alone, made by the interpreter."""
    counts = {"equal": 0, "both refuse": 0, "refused": 0, "needless": 0, "run": 0, "not run": 0, "reasons": {}}
    try:
        compiled = ENVIRONMENT.from_string(text)
    except Exception as error:
        return counts | {"reasons": {str(error): 1}}
    for conversation, request in requests(conversations):
        request["program"] = text
        wanted = {texts: reference(compiled, request, texts) for texts in (True, False)}
        for texts in (True, False):
            got = renderer.ask(request | {"run": True, "texts": texts, "form": False})
            if "error" in got:
                counts["not run"] += wanted[texts] is not None
                if wanted[texts] is not None:
                    counts["reasons"][got["error"][:120]] = counts["reasons"].get(got["error"][:120], 0) + 1
                continue
            counts["run"] += 1
            if got["text"] != wanted[texts]:
                faults.append((name, conversation, "the program is run as", got["text"], "Jinja", wanted[texts]))
        got = renderer.ask(request | {"run": False, "form": False})
        if "error" in got:
            form = renderer.ask(request | {"run": False, "form": True})
            if "text" in form and form["text"] in wanted.values():
                counts["needless"] += 1
                counts["reasons"][got["error"][:220]] = counts["reasons"].get(got["error"][:220], 0) + 1
            counts["both refuse" if wanted[True] is None or wanted[False] is None else "refused"] += 1
            continue
        added = "\u2581calls\u2581begin" in text and any(one.get("tool_calls") or one["role"] == "tool" for one in request["messages"])
        if got["text"] not in wanted.values() and not request["tools"] and not added:
            faults.append((name, conversation, "written as", got["text"], "Jinja", wanted[True]))
        counts["equal"] += got["text"] in wanted.values()
    return counts


def variants(text):
    """What strangers change in a template: (what, text)."""
    for mark in ["{% if add_generation_prompt", "{%- if add_generation_prompt", "{%- for message in messages", "{% for message in messages"]:
        at = text.rfind(mark)
        if at < 0:
            continue
        yield "text before " + mark, text[:at] + "{{ ' ' }}" + text[at:]
        yield "raw text before " + mark, text[:at] + "Today is Monday." + text[at:]
        yield "a branch on a variable before " + mark, text[:at] + "{% if messages | length > 2 %}{{ bos_token }}{% endif %}" + text[at:]
        yield "a branch on the last message before " + mark, text[:at] + "{% if messages[-1]['role'] == 'user' %}{{ '/no_think' }}{% endif %}" + text[at:]
        yield "a date before " + mark, text[:at] + "{{ strftime_now('%d %B %Y') }}" + text[at:]
        yield "a variable before " + mark, text[:at] + "{% set messages = messages[1:] %}" + text[at:]
        yield "an error before " + mark, text[:at] + "{% if messages[0]['role'] != 'system' %}{{ raise_exception('no') }}{% endif %}" + text[at:]
    yield "text at the end", text.rstrip("\n") + "\n\n"
    yield "an expression at the end", text + "{{ 'x' }}"
    for old, new in [("'user'", "'human'"), ("'assistant'", "'model'"), ("helpful", "harmful"), ("['content']", "['content'] | upper"), ("['content']", "['content'][:3]"),
                     ("<|im_end|>", "<|im_end|> "), ("trim", "upper"), ("</think>", "</thought>"), ("'system'", "'rules'"), ("Cutting", "Cut"), ("\\n", "\\n\\n"),
                     ("not ", ""), ("else", "elif 0"), (" and ", " or "), ("[-1]", "[0]"), ("tojson", "string")]:
        places = [match.start() for match in re.finditer(re.escape(old), text)]
        for at in {*places[:2], *places[-2:]}:
            yield f"{old} becomes {new} at {at}", text[:at] + new + text[at + len(old):]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("render_chat")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--few", action="store_true")
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.jinja"))
    if not files:
        print(f"skipped: no templates in {options.folder}")
        return 77
    renderer, faults, recognised, changed = Renderer(options.render_chat), [], 0, 0
    for file in files:
        text = file.read_text()
        counts = check(renderer, file.stem, text, CONVERSATIONS, faults)
        if options.table:
            reasons = sorted(counts.pop("reasons").items(), key=lambda one: -one[1])[:3]
            print(file.stem, counts, reasons if counts["not run"] or counts["needless"] else "")
        if not counts["equal"]:
            continue
        recognised += 1
        few = {name: CONVERSATIONS[name] for name in ("question", "system", "turns", "thoughts", "call and result", "result and question")}
        for what, variant in list(variants(text))[recognised % 8::8] if options.few else variants(text):
            changed += 1
            check(renderer, f"{file.stem}, {what}", variant, few, faults)
    for fault in faults[:20]:
        print("WRONG:", *(str(part) if i < 3 else repr(part)[-300:] for i, part in enumerate(fault)), sep="\n  ")
    print(f"{len(files)} templates, {recognised} recognised, {changed} variants of them, {len(faults)} faults")
    return 1 if faults or not recognised else 0


if __name__ == "__main__":
    sys.exit(main())
