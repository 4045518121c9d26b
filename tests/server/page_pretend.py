"""A server that is loading, busy, endless or cut off, with the real one's page."""

import http.server
import itertools
import json
import threading
import time

from running_server import RunningServer


class PretendServer:
    """What a server of a large reasoning model with two devices answers, in any state; its page is the real one."""

    def __enter__(self):
        self.state, self.asked = "ready", None
        self.left = threading.Event()  # The client of an endless answer has closed its connection.
        self.real = RunningServer().__enter__()
        self.files = threading.Lock()
        pretend = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def reply(self, status, body, kind="application/json", more=()):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in (("Content-Type", kind), ("Content-Length", str(len(data))), *more):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def loading(self):
                self.reply(503, {"error": {"message": "Loading model", "code": "loading"}, "progress": 0.42}, more=[("Retry-After", "1")])

            def do_GET(self):
                if self.path == "/health":
                    if pretend.state == "silent":
                        time.sleep(40)
                        return None
                    return self.loading() if pretend.state == "loading" else self.reply(200, {"status": "ok"})
                if self.path == "/v1/models":
                    return self.reply(200, {"data": [{"id": "thinker"}]})
                if self.path == "/props":
                    return self.reply(200, {"can_think": True, "default_generation_settings": {"n_ctx": 100, "params": {"temperature": 0.6}}})
                if self.path == "/metrics":
                    return self.reply(200, b"tessera_ready 1\ntessera_cache_usage_ratio 0.5\n", "text/plain")
                if self.path == "/tessera/machine":
                    gib = 1 << 30
                    return self.reply(200, {"devices": [
                        {"id": "cpu0", "name": "Test processor", "memory_bytes": 64 * gib, "weights_bytes": 30 * gib, "cache_bytes": 0, "work_bytes": gib, "mapped_bytes": 8 * gib},
                        {"id": "gpu0", "name": "Test card", "memory_bytes": 24 * gib, "weights_bytes": 12 * gib, "cache_bytes": 6 * gib, "work_bytes": gib, "mapped_bytes": 0}],
                        "layers": [{"layer": 0, "attention": "gpu0", "experts": None}, {"layer": 1, "attention": "gpu0", "experts": None},
                                   {"layer": 2, "attention": "gpu0", "experts": "cpu0", "weights": {"cpu0": 3 * gib, "gpu0": gib}}]})
                with pretend.files:  # the headers are those of the last request
                    status, body = pretend.real.request("GET", self.path)
                    kind = pretend.real.headers["Content-Type"]
                self.reply(status, body, kind)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if pretend.state == "loading":
                    return self.loading()
                if pretend.state == "busy":
                    return self.reply(429, {"error": {"message": "full", "code": "queue_full"}}, more=[("Retry-After", "30")])
                pretend.asked = body
                pretend.left.clear()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                deltas = [{"role": "assistant", "content": ""}, {"reasoning_content": "Let me "}, {"reasoning_content": "see."},
                          {"content": "It "}, {"content": "is."}]
                if pretend.state == "endless":
                    deltas = itertools.chain(deltas, itertools.repeat({"content": " on and on"}))
                elif pretend.state != "cut":
                    deltas += [
                        {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "look", "arguments": ""}}]},
                        {"tool_calls": [{"index": 0, "function": {"arguments": "{\"at\": [\"do"}}]},
                        {"tool_calls": [{"index": 0, "function": {"arguments": "or\", 1]}"}}]}]
                try:
                    for delta in deltas:
                        # A comment, and an event in two writes.
                        text = "data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) + "\n\n"
                        self.wfile.write(b": waiting\n\n" + text[:9].encode())
                        self.wfile.flush()
                        time.sleep(0.05)
                        self.wfile.write(text[9:].encode())
                        time.sleep(0.05)
                except OSError:
                    pretend.left.set()
                    return
                if pretend.state == "cut":
                    return
                end = [{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
                       {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 15, "total_tokens": 25,
                                                 "prompt_tokens_details": {"cached_tokens": 8}}}]
                self.wfile.write("".join(f"data: {json.dumps(e)}\n\n" for e in end).encode() + b"data: [DONE]\n\n")

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()
        self.real.__exit__()
