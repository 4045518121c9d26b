from routers import check

check("sglang-router", "sglang-router", [
    ("/v1/completions", {"prompt": "one two", "max_tokens": 2}),
    ("/v1/responses", {"input": "hi", "max_output_tokens": 2})])
