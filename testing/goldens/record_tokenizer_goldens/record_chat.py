#!/usr/bin/env python3
"""Records what Jinja makes of chat_templates.py: tests/text/data/chat.json.

    python3 testing/goldens/record_tokenizer_goldens/record_chat.py [--full DIR]
--full DIR: a folder with the complete templates, to check that the short ones here give the same.
"""
import argparse
import json
from pathlib import Path

from jinja2.sandbox import ImmutableSandboxedEnvironment

import chat_templates as ct

DATA = Path(__file__).resolve().parents[3] / "tests" / "text" / "data"


def write(path, value):
    """An object, one line a member, in UTF-8."""
    compact = lambda v: json.dumps(v, separators=(",", ":"), ensure_ascii=False)
    path.write_text("{" + ",\n".join(f"{compact(k)}:{compact(v)}" for k, v in value.items()) + "}\n", encoding="utf-8")


def environment():
    """As transformers renders chat templates."""
    one = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])

    def raise_exception(message):
        raise ValueError(message)

    one.globals["raise_exception"] = raise_exception
    return one


def render(text, conversation, prompt, thinking):
    variables = {"messages": [{"role": r, "content": c} for r, c in conversation], "add_generation_prompt": prompt,
                 "bos_token": ct.B, "eos_token": ct.E}
    if thinking is not None:
        variables["thinking"] = variables["enable_thinking"] = thinking
    return environment().from_string(text).render(variables)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", type=Path)
    options = parser.parse_args()
    recorded = []
    for key, text in ct.TEMPLATES.items():
        full = options.full / ct.FULL[key] if options.full and key in ct.FULL else None
        cases = []
        for c, conversation in enumerate(ct.CONVERSATIONS):
            for prompt in (False, True):
                for thinking in (None, False, True) if key in ("deepseek-v3.1", "qwen3") else (None,):
                    answer = render(text, conversation, prompt, thinking)
                    if full:
                        assert render(full.read_text(), conversation, prompt, thinking) == answer, (key, c, prompt, thinking)
                    cases.append({"conversation": c, "prompt": prompt, "thinking": thinking, "text": answer})
        recorded.append({"name": None if key in ct.UNNAMED else ct.NAMES.get(key, key), "template": text, "cases": cases})
        print(key, "checked against the complete template" if full else "")
    conversations = [[{"role": r, "content": c} for r, c in one] for one in ct.CONVERSATIONS]
    value = {"bos": ct.B, "eos": ct.E, "conversations": conversations, "templates": recorded, "unknown": ct.UNKNOWN}
    write(DATA / "chat.json", value)
    print((DATA / "chat.json").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
