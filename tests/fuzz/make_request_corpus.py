#!/usr/bin/env python3
"""Writes the seeds of request_fuzzer: make_request_corpus.py FOLDER."""
import json
import pathlib
import sys

CHAT, COMPLETION, PLAIN, TOKENIZE, DETOKENIZE, TEMPLATE, HTTP, MESSAGES, COUNT, OLLAMA_CHAT, OLLAMA_GENERATE, RESPONSES, INFILL = range(13)
TOOLS = [{"type": "function", "function": {"name": "look", "description": "at a place", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}]
QUESTION = [{"role": "user", "content": "hi"}]
HISTORY = [{"role": "system", "content": "be brief"}, {"role": "user", "content": [{"type": "text", "text": "where?"}]},
           {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": \"door\"}"}}]},
           {"role": "tool", "tool_call_id": "1", "name": "look", "content": "there"}, {"role": "assistant", "content": "<think>x</think>there"}, {"role": "user", "content": "sure?"}]
SEEDS = {
    "chat": (CHAT, {"messages": QUESTION}),
    "chat-history": (CHAT, {"messages": HISTORY, "tools": TOOLS, "tool_choice": "auto"}),
    "chat-fields": (CHAT, {"model": "m", "messages": QUESTION, "stream": True, "stream_options": {"include_usage": True}, "n": 2, "stop": ["a", "bc"], "max_tokens": 5,
                           "max_completion_tokens": 5, "seed": 7, "logprobs": True, "top_logprobs": 3, "logit_bias": {"5": -100, "6": 1.5}, "temperature": 0.5, "top_p": 0.9,
                           "top_k": 10, "min_p": 0.1, "typical_p": 0.9, "repeat_penalty": 1.1, "repeat_last_n": 64, "presence_penalty": 0.1, "frequency_penalty": 0.1,
                           "samplers": ["top_k", "temperature"], "response_format": {"type": "text"}, "modalities": ["text"], "return_progress": True}),
    "chat-thinking": (CHAT, {"messages": HISTORY, "chat_template_kwargs": {"enable_thinking": True}}),
    "chat-continued": (CHAT, {"messages": HISTORY[:2] + [{"role": "assistant", "content": "it is"}], "continue_final_message": True, "add_generation_prompt": False}),
    "chat-control": (CHAT, {"messages": [{"role": "user", "content": "<\uff5cUser\uff5c></s><|im_start|>system<think>"}]}),
    "completion": (COMPLETION, {"prompt": "the text", "echo": True, "best_of": 1}),
    "completion-tokens": (COMPLETION, {"prompt": [1, 2, 30], "logprobs": 2, "ignore_eos": True, "cache_prompt": False}),
    "plain": (PLAIN, {"prompt": "</s>the", "n_predict": -1, "n_probs": 2, "return_tokens": True, "stop": "x", "logit_bias": [[5, 1.5], [6, False]]}),
    "completion-prompts": (COMPLETION, {"prompt": ["a", [1, 2, "the"], "<s>"], "n": 2, "echo": True, "logprobs": 1, "skip_special_tokens": False}),
    "plain-fields": (PLAIN, {"prompt": [5, "the", 6], "n_probs": 3, "post_sampling_probs": True, "response_fields": ["content", "timings/prompt_n"], "t_max_predict_ms": 5.5,
                             "samplers": "edkypmxt", "logit_bias": [["the", -2], ["5", False]], "dry_multiplier": 0, "dry_sequence_breakers": ["\n"], "xtc_probability": 0,
                             "top_n_sigma": -1, "adaptive_target": -1, "mirostat": 0, "dynatemp_range": 0, "min_keep": 0, "timings_per_token": True, "id_slot": 3}),
    "tokenize": (TOKENIZE, {"content": "a text \u00e4", "add_special": True, "parse_special": False, "with_pieces": True}),
    "detokenize": (DETOKENIZE, {"tokens": [0, 5, 200, 300]}),
    "template": (TEMPLATE, {"messages": HISTORY, "tools": TOOLS}),
    "plain-asked": (PLAIN, {"prompt": "a \"b\"", "n": 3, "seed": 4294967295, "samplers": ["tfs_z", "top_k", "temperature"], "temperature_last": True, "tfs": 1,
                            "response_fields": ["generation_settings/samplers", "generation_settings/x", "timings", "prompt", "/", "a/b/c", ""]}),
    "chat-names": (CHAT, {"messages": [{"role": "system", "content": "s", "name": "<|im_end|>"}, {"role": "user", "content": "a", "name": "ann"}, {"role": "assistant", "content": "b", "name": ""}]}),
    "messages": (MESSAGES, {"max_tokens": 5, "system": [{"type": "text", "text": "x-anthropic-billing-header: a\nbe brief", "cache_control": {"type": "ephemeral"}}],
                            "messages": [{"role": "user", "content": "where?"}, {"role": "assistant", "content": [
                                {"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "see"},
                                {"type": "tool_use", "id": "1", "name": "look", "input": {"at": "door"}}]},
                                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "there"}]}]}],
                            "tools": [{"name": "look", "input_schema": {"type": "object"}}], "tool_choice": {"type": "auto"},
                            "stop_sequences": ["x"], "temperature": 0.5, "top_k": 3, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
    "messages-form": (MESSAGES, {"max_tokens": 5, "messages": QUESTION, "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}),
    "count": (COUNT, {"messages": QUESTION, "system": "be brief"}),
    "ollama-chat": (OLLAMA_CHAT, {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "thinking": "hm", "tool_calls": [{"function": {"name": "look", "arguments": {"at": 1}}}]},
                                               {"role": "tool", "tool_name": "look", "content": "b"}], "tools": TOOLS, "think": False, "stream": False,
                                  "options": {"num_predict": 5, "stop": ["x"], "temperature": 0.5, "num_ctx": 8}, "keep_alive": "5m"}),
    "ollama-form": (OLLAMA_CHAT, {"messages": QUESTION, "format": {"type": "object"}}),
    "ollama-generate": (OLLAMA_GENERATE, {"prompt": "the", "system": "s", "think": "low"}),
    "ollama-raw": (OLLAMA_GENERATE, {"prompt": "</s>the", "raw": True, "options": {"seed": 1}}),
    "ollama-gap": (OLLAMA_GENERATE, {"prompt": "the", "suffix": "end"}),
    "responses": (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}, {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "b"}]},
                                        {"type": "function_call", "call_id": "i", "name": "look", "arguments": "{}"}, {"type": "function_call_output", "call_id": "i", "output": "c"}],
                              "instructions": "be brief", "tools": [{"type": "function", "name": "look", "parameters": {}}], "tool_choice": "none", "max_output_tokens": 5,
                              "reasoning": {"effort": "none"}, "text": {"format": {"type": "text"}}, "metadata": {"a": "b"}}),
    "responses-text": (RESPONSES, {"input": "hi", "store": False, "include": ["reasoning.encrypted_content"]}),
    "infill": (INFILL, {"input_prefix": "a", "input_suffix": "b", "prompt": "c", "input_extra": [{"filename": "f", "text": "d"}], "n_predict": 3}),
    "plain-object": (PLAIN, {"prompt": [{"prompt_string": "a"}, [1, "b"], "c"], "stream": True}),
}
BODY = json.dumps(SEEDS["chat"][1])
REQUESTS = {
    "http-get": "GET /v1/models?x=1 HTTP/1.1\r\nHost: box.lan\r\nAuthorization: Bearer key\r\n\r\n",
    "http-post": f"POST http://localhost/v1/chat/completions HTTP/1.1\r\nHost: [::1]:80\r\nX-Api-Key: other\r\nOrigin: https://allowed.example\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}",
    "http-chunks": f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nauthorization: bearer key\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{BODY[:5]}\r\n{len(BODY) - 5:x}\r\n{BODY[5:]}\r\n0\r\n\r\n",
    "http-query": "GET /slots?fail_on_no_slot=1&_=%7e+%2&%5f=&&x=&model HTTP/1.1\r\nHost: box.lan\r\nAuthorization: Bearer key\r\n\r\n",
    "http-foreign": "GET / HTTP/1.0\r\nHost: evil.example\r\nOrigin: null\r\n\r\n",
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for number, (name, (kind, body)) in enumerate(SEEDS.items()):
        (folder / f"seed-{name}").write_bytes(bytes([kind, number]) + json.dumps(body, ensure_ascii=False).encode())
    for choice in range(60):
        (folder / f"seed-template-{choice:02}").write_bytes(bytes([CHAT, choice]) + json.dumps(SEEDS["chat-history"][1], ensure_ascii=False).encode())
    for name, text in REQUESTS.items():
        (folder / f"seed-{name}").write_bytes(bytes([HTTP, 0]) + text.encode())


if __name__ == "__main__":
    main()
