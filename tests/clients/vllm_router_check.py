from routers import check

check("vllm-router", "vllm-router", [
    ("/v1/completions", {"prompt": "one two", "max_tokens": 2}),
    ("/v1/responses", {"input": "hi", "max_output_tokens": 2}),
    ("/v1/messages", {"max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]})])
