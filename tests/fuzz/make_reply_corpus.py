#!/usr/bin/env python3
"""Writes the seeds of reply_fuzzer and its dictionary: make_reply_corpus.py FOLDER DICTIONARY."""
import pathlib
import sys

CALLS, CALLS_END = "<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"
CALL, CALL_END, SEP = "<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>", "<\uff5ctool\u2581sep\uff5c>"
D = "\uff5cDSML\uff5c"
# As ToolSyntax has them.
NONE, V3, V31, V32, HERMES, LLAMA, V4, KIMI, GLM, QWEN_XML, SEED, MINIMAX, FUNCTIONARY, MISTRAL, MISTRAL_NAMED, GRANITE, GEMMA, LFM2, NEMOTRON, APRIEL, COMMAND_R, GIGACHAT, \
    FIREFUNCTION, ACTIONS, CHANNELS, APERTUS, GIGACHAT31, RECIPIENT, KIMI_K3, MINIMAX_M1, MINIMAX_M3, MUSE, MINICPM, HUNYUAN, HUNYUAN_OPEN, SOLAR, SYNTAXES = range(37)
PLAIN, MAY_THINK, THINKS = 0, SYNTAXES, 2 * SYNTAXES
NS = "]<]minimax[>["

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
    "apertus": (APERTUS, "a<|tools_prefix|>[{\"f\": {\"a\": [1]}}, {\"g\": null}]<|tools_suffix|>b"),
    "gigachat-31": (GIGACHAT31, "a<|function_call|>{\"name\": \"f\", \"arguments\": {\"a\": 1}}"),
    "recipient": (RECIPIENT, "all\na>>>f\n{\"a\": \"}\"}>>>g\n>>>all\nb"),
    "recipient-call": (RECIPIENT, "f\n{\"a\": 1"),
    "kimi-k3": (KIMI_K3, "<|open|>response<|sep|>a<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>argument key=\"a&quot;\" type=\"string\"<|sep|>x\n1"
                         "<|close|>argument<|sep|><|open|>argument key=\"b\" type=\"array\"<|sep|>[1]<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"),
    "kimi-k3-json": (KIMI_K3, "<|open|>call tool=\"f\" index=\"1\"<|sep|><|open|>json type=\"object\"<|sep|>{\"a\": 1<|close|>json<|sep|><|close|>call<|sep|>"),
    "minimax-m1": (MINIMAX_M1, "<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n{\"name\": \"g\", \"arguments\": null}\n</tool_calls>"),
    "minimax-m3": (MINIMAX_M3, f"a{NS}<tool_call>\n{NS}<invoke name=\"f\">{NS}<a>{NS}<item>1{NS}</item>{NS}<item>{NS}<k>v <{NS}</k>{NS}</item>{NS}</a>{NS}<b>{NS}</b>{NS}</invoke>\n{NS}</tool_call>"),
    "muse": (MUSE, " to=self<|message|>t<|eom|><|start|>assistant to=f<|message|><atem:function_calls>\n<atem:invoke name=\"f\">\n<atem:parameter name=\"a\">1</atem:parameter>\n</atem:invoke>\n"
                   "</atem:function_calls><|eom|><|start|>assistant to=user<|message|>b<|eot|>"),
    "minicpm": (MINICPM, "a\n<function name=\"f\"><param name=\"a\"><![CDATA[</param>]]></param><param name=\"b\">1</param></function><function name=\"g\"></function>"),
    "hunyuan": (HUNYUAN, "<tool_calls>\n<tool_call>f<tool_sep>\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>\n</tool_calls>"),
    "hunyuan-open": (HUNYUAN_OPEN, "a<tool_calls:opensource>\n<tool_call:opensource>f<tool_sep:opensource>\n<arg_key:opensource>a</arg_key:opensource>\n<arg_value:opensource>x"),
    "solar": (SOLAR, "<|tool_calls|><|tool_call:begin|>abcdefghij<|tool_call:name|>f<|tool_call:args|>{\"a\": 1}<|tool_call:end|><|calls|>"),
    "xml-without-mark": (QWEN_XML, "a\n\n<function=f>\n<parameter=a>\nx\n</function>\n</tool_call>"),
    "hermes-without-mark": (HERMES, "{\"name\": \"f\", \"arguments\": {'a': None,}}\n</tool_call>"),
    "hermes-two": (HERMES, "<tool_call>{\"name\": \"f\", \"arguments\": null}\n{\"name\": \"g\", \"arguments\": \"{\\\"a\\\": 1}\"}}</tool_call>"),
    "hermes-in-thought": (HERMES + THINKS, "t\n<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"say \"x\" now\"}}</tool_call>"),
    "mistral-without-mark": (MISTRAL_NAMED, "f[ARGS]\"{\\\"a\\\": 1}\""),
    "lfm2-without-mark": (LFM2, "[f(a=1), g()]"),
    "glm-without-end": (GLM, "f\n<arg_key>a</arg_key><arg_value>1</tool_call>"),
    "channels-name": (CHANNELS, "<|channel|>commentary to=f<|message|>{\"a\": 1,<|call|>"),
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
