#!/usr/bin/env python3
"""Published chat templates against Python's Jinja: of every conversation both write the same text, or both refuse it.

    chat_templates_test.py RENDER_CHAT FOLDER [--all]
FOLDER: *.jinja. --all: every combination of tools, prompt and thinking, rather than a part of them. Exits with 77 (skipped) without
jinja2 or templates."""
import argparse
import json
import sys
from pathlib import Path

from jinja_reference import Renderer, environment, rendered

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
CONVERSATIONS |= {
    "null content": said((U, "a")) + [calls(ZURICH, content=None), result("17")],
    "null content and two calls": said((S, "s"), (U, "a")) + [calls(ZURICH, TWO, content=None), result("17"), result("12", 1)] + said((A, "x"), (U, "y")),
    "parts": [{"role": U, "content": [{"type": "text", "text": "a <|im_end|>"}, {"type": "text", "text": "b"}]}],
    "developer": said(("developer", "s"), (U, "a"))}


def requests(every):
    for name, messages in CONVERSATIONS.items():
        number = 0
        for tools in (None, TOOLS):
            for prompt in (True, False):
                for thinking in (None, True, False):
                    for as_text in (True, False):
                        number += 1
                        # Arguments matter where there are calls.
                        if (not as_text and not any(one.get("tool_calls") for one in messages)) or (not every and number % 3 != len(name) % 3):
                            continue
                        variables = {"messages": json.loads(json.dumps(messages)), "tools": tools, "add_generation_prompt": prompt, "bos_token": BOS, "eos_token": EOS}
                        for one in variables["messages"]:
                            for made in one.get("tool_calls", []):
                                if not as_text:
                                    made["function"]["arguments"] = json.loads(made["function"]["arguments"])
                        if thinking is not None:
                            variables["thinking"] = variables["enable_thinking"] = thinking
                        yield name, variables


def check_program(renderer, name, compiled, mutable, every, faults):
    """The interpreter alone. Templates that change lists, which transformers refuses, also against a sandbox that lets them."""
    equal = refused = 0
    for conversation, variables in requests(every):
        for may_change, reference in ((False, compiled), (True, mutable)):
            if may_change and ".append(" not in name[1]:
                continue
            wanted = rendered(reference, variables)
            got = renderer.ask(variables=json.dumps(variables), may_change=may_change)
            if "error" in got and wanted is None:
                refused += 1
            elif got.get("text") == wanted:
                equal += 1
            else:
                faults.append((name[0], conversation, got, "Jinja", wanted))
    return equal, refused


def check_chats(renderer, name, compiled, mutable, faults):
    """Conversations as the server writes them: as Jinja does of arguments of either kind, and of no content or an empty one."""
    equal = refused = 0
    for conversation, messages in CONVERSATIONS.items():
        if conversation in ("parts", "developer"):
            continue
        for prompt in (True, False):
            got = renderer.ask(messages=messages, tools=[], prompt=prompt, thinking=None, bos=BOS, eos=EOS)
            wanted = []
            for as_text in (True, False):
                for null in (True, False):
                    for reference in (compiled, mutable):
                        given = json.loads(json.dumps(messages))
                        for one in given:
                            if one.get("tool_calls") and not one["content"]:
                                one["content"] = None if null else ""
                            for made in one.get("tool_calls", []):
                                made["function"]["arguments"] = made["function"]["arguments"] if as_text else json.loads(made["function"]["arguments"])
                            # The key under which templates look for it differs.
                            if "reasoning_content" in one:
                                one["thinking"] = one["reasoning"] = one["thought"] = one["reasoning_content"]
                        for none in (None, []):  # Hermes' fails without a list
                            wanted.append(rendered(reference, {"messages": given, "tools": none, "add_generation_prompt": prompt, "bos_token": BOS, "eos_token": EOS}))
            if "text" in got and got["text"] in wanted:
                equal += 1
            elif "error" in got:
                refused += 1
            else:
                faults.append((name, conversation, "written as", got, "Jinja", wanted[0]))
    return equal, refused


# Of templates that write calls, or are known to be answered with some.
WITH_READERS = {
    "ByteDance-Seed-OSS", "CohereForAI-c4ai-command-r7b-12-2024-tool_use", "GLM-4.6", "GLM-4.7-Flash", "GLM-5.2", "GigaChat3-10B-A1.8B", "Kimi-K2-Instruct", "Kimi-K2-Thinking", "MiMo-VL",
    "Mistral-Small-3.2-24B-Instruct-2506", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "Qwen-QwQ-32B",
    "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "Qwen3-Coder", "Qwen3.5-4B", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai-DeepSeek-V3.1",
    "deepseek-ai-DeepSeek-V3.2", "deepseek-ai-DeepSeek-V4", "google-gemma-4-31B-it", "meetkai-functionary-medium-v3.1", "meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct",
    "meta-llama-Llama-3.3-70B-Instruct", "mistralai-Mistral-Nemo-Instruct-2407", "moonshotai-Kimi-K2", "openai-gpt-oss-120b", "stepfun-ai-Step-3.5-Flash", "unsloth-Apriel-1.5", "unsloth-mistral-Devstral-Small-2507"}
CALLS = {"one": [call("weather", {"city": "Z\u00fcrich \"x\" <b> 7", "days": 2})], "number as text": [call("weather", {"city": "12"})], "nested": [call("clock", {"a": [1, 2.5, None, True], "b": {"c": "x\ny"}})],
         "none": [call("clock", {})], "two": [call("weather", {"city": "a"}), call("clock", {"z": "q"}, 1)]}


def check_readers(renderer, name, faults):
    """What a template writes of calls is read as those calls, and what was read is written as the same text."""
    count = 0
    question = [{"role": U, "content": "Qq"}]
    for what, made in CALLS.items():
        for content in ("", "Let me see."):
            def ask(more, prompt, **parse):
                return renderer.ask(messages=question + more, tools=TOOLS, prompt=prompt, thinking=None, bos=BOS, eos=EOS, **parse)
            answer = {"role": A, "content": content, "tool_calls": made}
            before, after, plain = ask([], True), ask([answer], False), ask([{"role": A, "content": "Tsrend"}], False)
            if "error" in before or "error" in after or "error" in plain:
                continue  # one call a message, results that are missing
            before, after, plain = before["text"], after["text"], plain["text"]
            # As far as the model's own text begins, at the end of a marker or line.
            same = next((i for i, (a, b) in enumerate(zip(before, after)) if a != b), min(len(before), len(after)))
            while same and before[same - 1] not in ">]\n":
                same -= 1
            text, end = after[same:], plain[plain.rfind("Tsrend") + 6:]
            # What ends the turn, or stands before results, is the end of the answer.
            for mark in (end, "<|eom_id|>", "<|tool_response>"):
                if mark and text.endswith(mark):
                    text = text[:-len(mark)]
            if before.endswith("</think>") and text.startswith("</think>"):
                text = text[8:]
            # Some templates write no call beside a content, or the first of them alone.
            if any(text.count(one["function"]["name"]) < 1 for one in made) or (content and text.find(content) > text.find(made[0]["function"]["name"])):
                continue
            text = text.split("<\uff5cend\u2581of\u2581sentence\uff5c>")[0]
            got = ask([], True, parse=text)
            read = got.get("read")
            wanted = [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in made]
            try:
                calls_read = [(one["name"], json.loads(one["arguments"])) for one in read["calls"]]
            except (TypeError, ValueError):
                calls_read = got
            if calls_read != wanted:
                faults.append((name, f"calls {what!r} are read as", calls_read, text))
                continue
            again = {"role": A, "content": read["content"].replace("<\uff5cAssistant\uff5c>", "").strip(), "reasoning_content": read["reasoning"], "tool_calls": [dict(one, function=dict(one["function"], arguments=got_one["arguments"])) for one, got_one in zip(made, read["calls"])]}
            rewritten = ask([again], False)
            if rewritten.get("text") != after:
                faults.append((name, f"calls {what!r} are written again as", rewritten, after))
            count += 1
    if name in WITH_READERS and count == 0:
        faults.append((name, "no call is read"))
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("render_chat")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.jinja"))
    if not files:
        print(f"skipped: no templates in {options.folder}")
        return 77
    renderer, faults, total = Renderer(options.render_chat), [], 0
    strict, lenient = environment(), environment(immutable=False)
    for file in files:
        text = file.read_text()
        got = renderer.ask(program=text)
        if "error" in got:
            faults.append((file.stem, "is not read", got["error"]))
            continue
        compiled, mutable = strict.from_string(text), lenient.from_string(text)
        equal, refused = check_program(renderer, (file.stem, text), compiled, mutable, options.all, faults)
        chats = check_chats(renderer, file.stem, compiled, mutable, faults)
        read = check_readers(renderer, file.stem, faults)
        total += equal + chats[0]
        print(f"{file.stem}: program {equal} equal, {refused} refused by both; chats {chats[0]} equal, {chats[1]} refused; {read} answers read")
    for fault in faults[:20]:
        print("WRONG:", *(str(part) if i < 3 else repr(part)[-300:] for i, part in enumerate(fault)), sep="\n  ")
    print(f"{len(files)} templates, {len(CONVERSATIONS)} conversations, {total} texts equal, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
