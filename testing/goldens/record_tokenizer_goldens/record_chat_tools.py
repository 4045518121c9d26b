#!/usr/bin/env python3
"""Records what Jinja makes of chat_tool_templates.py: tests/text/data/chat_tools.json.

    python3 testing/goldens/record_tokenizer_goldens/record_chat_tools.py [--full DIR]
--full DIR: a folder with the complete programs, to check that those here give the same.
"""
import argparse
import json
import os

import chat_templates as ct
import chat_tool_templates as tt
import record_chat


def environment():
    one = record_chat.environment()
    # As transformers defines it.
    one.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    return one


def published(message, objects):
    """A message as an application hands it to Jinja."""
    one = {"role": message["role"], "content": message["content"]}
    if "reasoning" in message:
        one["reasoning_content"] = message["reasoning"]
    if "tool_calls" in message:
        one["tool_calls"] = [{"id": call["id"], "type": "function", "function": {
            "name": call["name"], "arguments": json.loads(call["arguments"]) if objects else call["arguments"]}} for call in message["tool_calls"]]
    return one


def render(text, objects, conversation, tools, prompt, thinking):
    variables = {"messages": [published(one, objects) for one in conversation], "add_generation_prompt": prompt, "bos_token": ct.B, "eos_token": ct.E}
    if tools:
        variables["tools"] = tt.TOOLS
    if thinking is not None:
        variables["thinking"] = variables["enable_thinking"] = thinking
    return environment().from_string(text).render(variables)


def without_shared(cases):
    """Texts of a template begin alike: each is recorded as what follows the first "same" bytes of the text of case "like"."""
    whole, short = [], []
    for case in cases:
        text = case["text"].encode()
        shared = [len(os.path.commonprefix([text, other])) for other in whole]
        same = max(shared, default=0)
        while same and text[same:same + 1] and text[same] & 0xC0 == 0x80:  # within a character
            same -= 1
        short.append({**case, "like": shared.index(max(shared)) if shared else 0, "same": same, "text": text[same:].decode()})
        whole.append(text)
    return short


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", type=record_chat.Path)
    options = parser.parse_args()
    recorded = []
    for name, (text, objects, described, recognised) in tt.TEMPLATES.items():
        full = options.full / tt.FULL[name] if options.full and name in tt.FULL else None
        cases = []
        for c, conversation in enumerate(tt.CONVERSATIONS):
            if name == "llama3.1" and any(len(one.get("tool_calls", [])) > 1 for one in conversation):
                continue
            for tools in (False, True) if described and c in tt.WITH_TOOLS else (False,):
                for prompt, thinking in [(tools == (c % 2 == 0), None)] + ([(True, False), (True, True)] if name in tt.THINKING else []):
                    answer = render(text, objects, conversation, tools, prompt, thinking)
                    if full:
                        assert render(full.read_text(), objects, conversation, tools, prompt, thinking) == answer, (name, c, tools, prompt, thinking)
                    cases.append({"conversation": c, "tools": tools, "prompt": prompt, "thinking": thinking, "text": answer})
        recorded.append({"name": name.split(" (")[0], "by_name": name not in tt.UNNAMED, "template": text if recognised else None, "described": described, "cases": without_shared(cases)})
        print(name, len(cases), "checked against the complete program" if full else "")
    texts = [{"text": one, "plain": json.dumps(json.loads(one), ensure_ascii=False), "indented": json.dumps(json.loads(one), ensure_ascii=False, indent=4)}
             for one in tt.JSON]
    value = {"bos": ct.B, "eos": ct.E, "tools": [json.dumps(one) for one in tt.TOOLS], "conversations": tt.CONVERSATIONS, "json": texts, "templates": recorded}
    record_chat.write(record_chat.DATA / "chat_tools.json", value)
    print((record_chat.DATA / "chat_tools.json").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
