"""Several servers, and many clients of whatever stands in front of them."""

import contextlib
import http.client
import json
import os
import re
import threading

from running_server import LIMIT, RunningServer

DOCUMENTATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "replicas.md")
CLIENTS, REQUESTS = 32, 6  # of each


def block_of(language):
    """The one block of this language in docs/replicas.md."""
    with open(DOCUMENTATION) as file:
        [block] = re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.M | re.S)
    return block


class Replicas:
    def __init__(self, count, *flags):
        self.count, self.flags = count, flags

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.servers = [self.stack.enter_context(RunningServer("-t", "1", *self.flags)) for _ in range(self.count)]
        return self

    def __exit__(self, *exception):
        return self.stack.__exit__(*exception)


class Results:
    def __init__(self):
        self.lock = threading.Lock()
        self.whole = self.streamed = 0  # answers that are complete
        self.cut = 0                    # answers that had begun to arrive and have no end
        self.lost = []                  # requests without an answer: why


def ask(port, number, stream):
    """An answer's state: "complete", "cut", or why there is none."""
    body = {"messages": [{"role": "user", "content": f"Count from 1 to 10 in French. ({number})"}], "max_tokens": 40, "ignore_eos": True, "stream": stream}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {error!r}"
    try:
        text = answer.read()
    except (OSError, http.client.HTTPException) as error:
        return "cut" if answer.status == 200 else f"broken after {answer.status}: {error!r}"
    finally:
        connection.close()
    if answer.status != 200:
        return f"{answer.status}: {text[:200]}"
    if stream:
        return "complete" if text.rstrip().endswith(b"data: [DONE]") else "cut"
    return "complete" if json.loads(text)["choices"][0]["finish_reason"] == "length" else f"not complete: {text[:200]}"


def ask_many(port, replicas, kill=None):
    """32 clients with several requests each, every other one streamed. `kill` is called with a replica while it has requests."""
    results, killed = Results(), threading.Event()
    if not kill:
        killed.set()

    def client(i):
        # Requests go on until one of the replicas is gone, and for a while after that.
        left = REQUESTS
        number = 0
        while left > 0:
            number += 1
            stream = (i + number) % 2 == 0
            state = ask(port, i * 1000 + number, stream)
            with results.lock:
                if state == "complete":
                    results.streamed += stream
                    results.whole += not stream
                elif state == "cut":
                    results.cut += 1
                else:
                    results.lost.append(state)
                    return
            if killed.is_set():
                left -= 1

    threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    if kill:
        victim = replicas.servers[0]
        victim.wait_for_metric("requests_running", lambda value: value > 1)
        kill(victim)
        killed.set()
    for thread in threads:
        thread.join()
    return results
