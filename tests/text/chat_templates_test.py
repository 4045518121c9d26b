#!/usr/bin/env python3
"""Published chat templates against Python's Jinja: of every conversation both write the same text, or both refuse it.

    chat_templates_test.py RENDER_CHAT FOLDER [--all]
FOLDER: *.jinja. --all: every combination of tools, prompt and thinking, rather than a part of them. Exits with 77 (skipped) without
jinja2 or templates."""
import argparse
import json
import re
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
        "type": "object", "properties": {"city": {"type": "string", "description": "Name"}, "days": {"type": "integer", "description": "How many"}}, "required": ["city"]}}},
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


def python_literal(value):
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(map(python_literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {python_literal(v)}" for k, v in value.items()) + "}"
    return repr(value)


def as_content(name, message):
    """The content in which a template that writes no calls is given them."""
    functions = [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in message["tool_calls"]]
    content = message["content"] or ""
    if name.startswith("LFM2"):
        made = ", ".join(f"{f}({', '.join(f'{k}={python_literal(v)}' for k, v in arguments.items())})" for f, arguments in functions)
        return f"<|tool_call_start|>[{made}]<|tool_call_end|>{content}"
    if name.startswith("ibm-granite-granite-3"):
        return content + "<|tool_call|>" + json.dumps([{"name": f, "arguments": arguments} for f, arguments in functions], ensure_ascii=False)
    return None


def paragraphs(*texts):
    return "\n\n".join(text for text in texts if text)


def folded(messages):
    """Without system messages behind others: what a template is given that has no room for them."""
    made = []
    for i, one in enumerate(messages):
        role, before = one["role"], made[-1]["role"] if made else None
        late = i > 0 and messages[i - 1]["role"] == S
        if role == S and before == A:
            made.append({"role": U, "content": one["content"]})
        elif (role == S and made) or (late and role == before == U and made[-1].get("name", "") == one.get("name", "")):
            made[-1]["content"] = paragraphs(made[-1]["content"], one["content"])
        else:
            made.append(dict(one))
    return made


def check_chats(renderer, name, compiled, mutable, faults):
    """Conversations as the server writes them: as Jinja does of arguments of either kind, and of no content or an empty one."""
    equal = refused = 0
    probes = said((U, "Question"), (S, "Late")), said((S, "First"), (U, "Question"), (A, "Answer"), (U, "Again"), (S, "Late"))
    late = all(
        any(text and all(one["content"] in text for one in probe if one["role"] != A)
            for text in (rendered(reference, {"messages": probe, "tools": none, "add_generation_prompt": True, "bos_token": BOS, "eos_token": EOS, "functions": "[]", "datetime": ""})
                         for reference in (compiled, mutable) for none in (None, [])))
        for probe in probes)
    for conversation, messages in CONVERSATIONS.items():
        if conversation in ("parts", "developer"):
            continue
        if not late:
            messages = folded(messages)
        for prompt in (True, False):
            got = renderer.ask(messages=CONVERSATIONS[conversation], tools=[], prompt=prompt, thinking=None, bos=BOS, eos=EOS)
            wanted = []
            today = re.search(r"Today is (\w{3} \d{2} \d{4} [0-9:]{8})\.", got.get("text", ""))
            for as_text in (True, False):
                for null in (True, False):
                    for reference in (compiled, mutable):
                        given = json.loads(json.dumps(messages))
                        for one in given:
                            if one.get("tool_calls") and as_content(name, one) is not None:
                                one["content"] = as_content(name, one)
                            elif one.get("tool_calls") and not one["content"]:
                                one["content"] = None if null else ""
                            for made in one.get("tool_calls", []):
                                made["function"]["arguments"] = made["function"]["arguments"] if as_text else json.loads(made["function"]["arguments"])
                            # The key under which templates look for it differs.
                            if "reasoning_content" in one:
                                one["thinking"] = one["reasoning"] = one["thought"] = one["tool_plan"] = one["reasoning_content"]
                        for none in (None, []):  # Hermes' fails without a list
                            variables = {"messages": given, "tools": none, "add_generation_prompt": prompt, "bos_token": BOS, "eos_token": EOS}
                            if today:  # FireFunction's, which needs both
                                variables |= {"functions": "[]", "datetime": today[1]}
                            wanted.append(rendered(reference, variables))
            if "text" in got and got["text"] in wanted:
                equal += 1
            elif "error" in got:
                refused += 1
            else:
                faults.append((name, conversation, "written as", got, "Jinja", wanted[0]))
    return equal, refused


# Of each: how it writes calls, how many of ten answers come back as they were, and what is so of the others. The templates of
# "none" describe no tools.
TABLE = {
    "ByteDance-Seed-OSS": ("seed-xml", 10, ""),
    "CohereForAI-c4ai-command-r-plus-tool_use": ("actions", 10, ""),
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": ("command-r", 10, ""),
    "GLM-4.6": ("glm", 10, ""),
    "GLM-4.7-Flash": ("glm", 10, ""),
    "GLM-5.2": ("glm", 10, ""),
    "GigaChat3-10B-A1.8B": ("gigachat", 8, "not all calls are written"),
    "HuggingFaceTB-SmolLM3-3B": ("none", 0, "tools are refused"),
    "Kimi-K2-Instruct": ("kimi", 10, ""),
    "Kimi-K2-Thinking": ("kimi", 10, ""),
    "LFM2-8B-A1B": ("lfm2", 10, ""),
    "MiMo-VL": ("hermes", 10, ""),
    "Mistral-Small-3.2-24B-Instruct-2506": ("mistral-named", 10, ""),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("qwen-xml", 10, ""),
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": ("hermes", 10, ""),
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": ("hermes", 10, ""),
    "Qwen-QwQ-32B": ("hermes", 10, ""),
    "Qwen-Qwen2.5-7B-Instruct": ("hermes", 10, ""),
    "Qwen-Qwen3-0.6B": ("hermes", 10, ""),
    "Qwen3-Coder": ("qwen-xml", 10, ""),
    "Qwen3.5-4B": ("qwen-xml", 10, ""),
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": ("deepseek-v3", 5, "not all calls are written"),
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": ("deepseek-v3", 5, "the content is written as another answer"),
    "deepseek-ai-DeepSeek-V3.1": ("deepseek-v3.1", 10, ""),
    "deepseek-ai-DeepSeek-V3.2": ("deepseek-v3.2", 10, ""),
    "deepseek-ai-DeepSeek-V4": ("deepseek-v4", 10, ""),
    "fireworks-ai-llama-3-firefunction-v2": ("firefunction", 10, ""),
    "google-gemma-2-2b-it": ("none", 0, "tools are refused"),
    "google-gemma-4-31B-it": ("gemma", 10, ""),
    "ibm-granite-granite-3.3-2B-Instruct": ("granite", 10, ""),
    "llama-cpp-deepseek-r1": ("deepseek-v3", 5, "not all calls are written"),
    "llama-cpp-rwkv-world": ("none", 0, "tools are refused"),
    "meetkai-functionary-medium-v3.1": ("functionary", 10, ""),
    "meta-llama-Llama-3.1-8B-Instruct": ("llama3", 8, "one call a message"),
    "meta-llama-Llama-3.2-3B-Instruct": ("llama3", 8, "one call a message"),
    "meta-llama-Llama-3.3-70B-Instruct": ("llama3", 8, "one call a message"),
    "microsoft-Phi-3.5-mini-instruct": ("none", 0, "tools are refused"),
    "mistralai-Mistral-Nemo-Instruct-2407": ("mistral", 10, ""),
    "moonshotai-Kimi-K2": ("kimi", 10, ""),
    "openai-gpt-oss-120b": ("channels", 8, "not all calls are written"),
    "stepfun-ai-Step-3.5-Flash": ("qwen-xml", 10, ""),
    "unsloth-Apriel-1.5": ("apriel", 10, ""),
    "unsloth-mistral-Devstral-Small-2507": ("mistral-named", 10, ""),
}


CALLS = {"one": [call("weather", {"city": "Z\u00fcrich \"x\" <b> 7", "days": 2})], "number as text": [call("weather", {"city": "12"})], "nested": [call("clock", {"a": [1, 2.5, None, True], "b": {"c": "x\ny"}})],
         "none": [call("clock", {})], "two": [call("weather", {"city": "a"}), call("clock", {"z": "q"}, 1)]}


SYNTAXES = ["none", "deepseek-v3", "deepseek-v3.1", "deepseek-v3.2", "hermes", "llama3", "deepseek-v4", "kimi", "glm", "qwen-xml", "seed-xml", "minimax", "functionary", "mistral", "mistral-named",
            "granite", "gemma", "lfm2", "nemotron", "apriel", "command-r", "gigachat", "firefunction", "actions", "channels"]


REFUSALS = {"cannot write tool calls": "calls are refused", "does not say how tools": "tools are refused", "single tool-calls": "one call a message", "cannot be run": "the program fails"}


def check_readers(renderer, name, faults):
    """What a template writes of calls is read as those calls, and what was read is written as the same text. Returns the
    syntax, how many answers came back the same, and why others could not."""
    count, why, syntax = 0, set(), "none"
    question = [{"role": U, "content": "Qq"}]
    for what, made in CALLS.items():
        for content in ("", "Let me see."):
            def ask(more, prompt, **parse):
                return renderer.ask(messages=question + more, tools=TOOLS, prompt=prompt, thinking=None, bos=BOS, eos=EOS, **parse)
            answer = {"role": A, "content": content, "tool_calls": made}
            before, after, plain = ask([], True), ask([answer], False), ask([{"role": A, "content": "Tsrend"}], False)
            if "error" in before or "error" in after or "error" in plain:
                refused = before.get("error") or after.get("error") or plain.get("error")
                why.add(next((reason for word, reason in REFUSALS.items() if word in refused), refused))
                continue
            syntax = SYNTAXES[before["syntax"]]
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
            if any(text.count(one["function"]["name"]) < 1 for one in made):
                why.add("not all calls are written")
                continue
            # Command R+ says before each answer what it wants.
            if syntax == "actions":
                text = text.split("<|CHATBOT_TOKEN|>")[-1].split("<|START_OF_TURN_TOKEN|>")[0]
            end_of_turn = "<\uff5cend\u2581of\u2581sentence\uff5c>"
            if end_of_turn in text and content in text.split(end_of_turn, 1)[1] and content:
                why.add("the content is written as another answer")
                continue
            text = text.split(end_of_turn)[0]
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
    row = (syntax, count, ", ".join(sorted(why)))
    if name in TABLE and row != TABLE[name]:
        faults.append((name, "is read as", row, TABLE[name]))
    # One that is not in the table: where calls are read, some come back.
    if name not in TABLE and syntax != "none" and count == 0:
        faults.append((name, "no call is read", row))
    return row


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
        print(f"{file.stem}: program {equal} equal, {refused} refused by both; chats {chats[0]} equal, {chats[1]} refused; calls {read[0]}: {read[1]} answers written again as they were read{'; ' if read[2] else ''}{read[2]}")
    for fault in faults[:20]:
        print("WRONG:", *(str(part) if i < 3 else repr(part)[-300:] for i, part in enumerate(fault)), sep="\n  ")
    print(f"{len(files)} templates, {len(CONVERSATIONS)} conversations, {total} texts equal, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
