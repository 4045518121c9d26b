#!/usr/bin/env python3
"""Writes the seeds of reply_fuzzer and its dictionary: make_reply_corpus.py FOLDER DICTIONARY."""
import pathlib
import sys

CALLS, CALLS_END = "<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"
CALL, CALL_END, SEP = "<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>", "<\uff5ctool\u2581sep\uff5c>"
D = "\uff5cDSML\uff5c"
NONE, V3, V31, V32, HERMES, LLAMA = range(6)
PLAIN, MAY_THINK, THINKS = 0, 6, 12

V3_CALL = CALL + "function" + SEP + "f\n```json\n{\"a\": \"b\"}\n```" + CALL_END
DSML = (f"\n\n<{D}function_calls>\n<{D}invoke name=\"f\">\n<{D}parameter name=\"a\" string=\"true\">x\ny</{D}parameter>\n"
        f"<{D}parameter name=\"b\" string=\"false\">[1]</{D}parameter>\n</{D}invoke>\n</{D}function_calls>")
HERMES_CALL = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"<b>\\\"\"}}\n</tool_call>"
SEEDS = {
    "thought": (NONE + MAY_THINK, "<think>\na\n</think>\n\nb"),
    "begun-thought": (NONE + THINKS, "a\n</think>b"),
    "v3": (V3 + PLAIN, "a" + CALLS + V3_CALL + "\n" + V3_CALL + CALLS_END + "b"),
    "v3-thought": (V3 + THINKS, "a\n" + CALLS + V3_CALL + CALLS_END),
    "v3-no-fence": (V3 + PLAIN, CALLS + CALL + "function" + SEP + "f\n```json\n{}" + CALLS_END),
    "v31": (V31 + MAY_THINK, "<think>t</think>c" + CALLS + CALL + "f" + SEP + "{}" + CALL_END + CALL + "g" + SEP + "[" + CALL_END + CALLS_END),
    "v32": (V32 + THINKS, "t</think>c" + DSML),
    "v32-empty": (V32 + PLAIN, f"<{D}function_calls><{D}invoke name=\"f\"></{D}invoke><{D}invoke name=\"\">"),
    "hermes": (HERMES + MAY_THINK, "<think>\n\n</think>\n\nc\n" + HERMES_CALL + "\n" + HERMES_CALL),
    "hermes-order": (HERMES + PLAIN, "<tool_call>{\"arguments\": 1.5, \"x\": [{}], \"name\": \"g\\u00e4\"}</tool_call>"),
    "hermes-open": (HERMES + PLAIN, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>b"),
    "llama": (LLAMA + PLAIN, "{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"a\": []}}; {\"name\": \"g\", \"parameters\": {}}"),
    "llama-tag": (LLAMA + PLAIN, "a <|python_tag|>{\"name\": \"f\", \"parameters\": {}} b"),
    "llama-json": (LLAMA + PLAIN, "{\"name\": \"f\", \"age\": 3}"),
    "json": (0, "{\"a\": [1, -0.5e-7, 1e400, true, null, {\"a\": \"\\ud83d\\ude00\\n\"}], \"b\": 1, \"b\": 2}"),
}
CONVERSATION = ("f\x02tool\nw{\"type\": \"function\", \"function\": {\"name\": \"\x02\", \"parameters\": {}}}\ns\x02sys\nu\x02q<think>\nr\x02thought\n"
                "cf{\"a\": \"\x02\", \"b\": [1]}\nt\x02result\na<think>\x02</think>\x02\nu\x02\n")
PROGRAM = ("{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '<\uff5cUser\uff5c>' + m['content'] }}"
           "{% elif m['role'] == 'assistant' %}{{ '<\uff5cAssistant\uff5c>' + m['content'] + '<\uff5cend\u2581of\u2581sentence\uff5c>' }}"
           "{% elif m['role'] == 'system' %}{{ m['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<\uff5cAssistant\uff5c>' }}{% endif %}")
WORDS = [CALLS, CALLS_END, CALL, CALL_END, SEP, "function", "\n```json\n", "\n```", f"<{D}function_calls>", f"</{D}function_calls>", f"<{D}invoke name=\"", f"</{D}invoke>",
         f"<{D}parameter name=\"", "\" string=\"true\">", "\" string=\"false\">", f"</{D}parameter>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<|python_tag|>",
         "{\"name\": \"", "\"arguments\": ", "\"parameters\": ", "\\u00e4", "\\ud83d\\ude00", "1e5", "{%", "%}", "{{", "}}", "message['content']"]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name, (choice, text) in SEEDS.items():
        (folder / f"seed-{name}").write_bytes(bytes([choice, 0x23]) + text.encode())
    for i in range(0, 21):
        (folder / f"seed-chat-{i:02}").write_bytes(bytes([i, 0]) + CONVERSATION.encode())
    (folder / "seed-program").write_bytes(bytes([0, 0]) + PROGRAM.encode())
    lines = []
    for word in WORDS:
        lines.append('"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word.encode()) + '"\n')
    pathlib.Path(sys.argv[2]).write_text("".join(lines))


if __name__ == "__main__":
    main()
