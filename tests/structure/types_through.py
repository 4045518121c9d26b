"""Sends each type of pydantic_types.py through a client and judges what the server answered to the requests that the client wrote.

A proxy of our own between the two records requests and answers, so that one judgement serves every client and API, and a client's own reading of
an answer (which a model without sense rarely pleases) decides nothing.
"""

import collections
import http.client
import http.server
import json
import sys
import threading
import urllib.parse

import jsonschema
import pydantic_types

QUESTION = "Give me JSON."
# The flags of a server for them. The bundled model writes on and on: `"`, `]` and `}` are made likelier, so that most answers end before they are cut.
SERVER = ("--chat-template", "qwen2.5", "--seed", "1", "-c", "16384", "--request-context", "4096", "--temp", "1", "-l", "5+12", "-l", "64+12", "-l", "96+12")
TOKENS = 160  # of an answer at most
WRONG = "WRONG"
OUTCOMES = ("valid", "cut", "refused by name", "refused by the client")


class Recorder:
    """A proxy in front of a server; `exchanges` has (path, request, status, headers, answer) of each POST."""

    def __init__(self, url):
        self.exchanges = exchanges = []
        target = urllib.parse.urlsplit(url).netloc

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                connection = http.client.HTTPConnection(target)
                connection.request("POST", self.path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                text = answer.read()
                connection.close()
                exchanges.append((self.path, json.loads(body), answer.status, dict(answer.getheaders()), json.loads(text)))
                self.send_response(answer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def schemas_of(request):
    """Returns the schema of the answer's text or None, and those of tools by name; each with whether it has to be enforced whole."""
    form = request.get("response_format") or (request.get("text") or {}).get("format") or (request.get("output_config") or {}).get("format")
    text = (request["format"], True) if request.get("format") else None
    if form and form["type"] == "json_schema":
        text = (form.get("json_schema", form)["schema"], True)
    tools = {}
    for tool in request.get("tools") or ():
        tool = tool.get("function", tool)
        tools[tool["name"]] = (tool.get("parameters") or tool.get("input_schema"), bool(tool.get("strict")))
    return text, tools


def answers_of(path, answer):
    """Returns the text, the calls as (name, arguments as JSON), and whether the answer was cut by its length."""
    if path.endswith("/chat/completions"):
        [choice] = answer["choices"]
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in choice["message"].get("tool_calls") or ()]
        return choice["message"]["content"] or "", calls, choice["finish_reason"] == "length"
    if path.endswith("/responses"):
        text = "".join(part["text"] for item in answer["output"] if item["type"] == "message" for part in item["content"])
        return text, [(item["name"], item["arguments"]) for item in answer["output"] if item["type"] == "function_call"], answer["status"] == "incomplete"
    if path == "/api/chat":
        return answer["message"]["content"], [], answer["done_reason"] == "length"
    text = "".join(block["text"] for block in answer["content"] if block["type"] == "text")
    return text, [(block["name"], json.dumps(block["input"])) for block in answer["content"] if block["type"] == "tool_use"], answer["stop_reason"] == "max_tokens"


def has_keyword(schema, word):
    if isinstance(schema, dict):
        return word in schema or any(has_keyword(value, word) for value in schema.values())
    return isinstance(schema, list) and any(has_keyword(value, word) for value in schema)


def validate(schema, word, text):
    if word:
        schema = json.loads(json.dumps(schema).replace(f'"{word}"', '"$comment"'))
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER).validate(json.loads(text))


def judge(exchange, word):
    """Returns the outcome of one request. Throws AssertionError or jsonschema's where the server did wrong."""
    path, request, status, headers, answer = exchange
    text_schema, tools = schemas_of(request)
    sent = [schema for schema in [text_schema, *tools.values()] if schema]
    assert sent, f"no schema was sent: {request}"
    lacking = bool(word) and any(has_keyword(schema, word) for schema, _ in sent)
    if lacking and any(whole and has_keyword(schema, word) for schema, whole in sent):
        assert status == 400 and word in json.dumps(answer), f"expected 400 that names {word}, got {status}: {answer}"
        return "refused by name"
    assert status == 200, f"{status}: {json.dumps(answer)}; sent: {json.dumps(request)}"
    unenforced = {key.lower(): value for key, value in headers.items()}.get("x-tessera-unenforced", "")
    assert (word in unenforced) if lacking else not unenforced, f"x-tessera-unenforced: {unenforced!r}; sent: {json.dumps(request)}"
    text, calls, cut = answers_of(path, answer)
    if cut:
        return "cut"
    for name, arguments in calls:
        validate(tools[name][0], word, arguments)
    if text_schema and not calls:
        validate(text_schema[0], word, text)
    forced = request.get("tool_choice") not in (None, "auto", {"type": "auto"})
    assert calls or not (tools and forced), f"no call, though one was forced: {answer}"
    return "valid"


def in_words(counts):
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in (*OUTCOMES, WRONG) if counts[outcome])


def send_types(url, ways):
    """`ways`: by name, functions (url, type, model that has it as its member `value`) that send it through the client; what they throw is of no interest.
    Prints a line for each way, and returns how often each outcome was had by the ways together. Throws AssertionError if the server did anything wrong."""
    wrong, total = [], collections.Counter()
    recorder = Recorder(url)
    try:
        for way, send in ways.items():
            counts, refusals = collections.Counter(), []
            for name, kind, word in pydantic_types.cases():
                recorder.exchanges.clear()
                problem = None
                try:
                    send(recorder.url, kind, pydantic_types.model(kind))
                except Exception as error:
                    problem = error
                if not recorder.exchanges:
                    counts["refused by the client"] += 1
                    refusals.append(f"{name} ({type(problem).__name__}: {str(problem).splitlines()[0][:100]})")
                    continue
                try:
                    # A client may ask again after an answer that does not please it.
                    counts[[judge(exchange, word) for exchange in list(recorder.exchanges)][0]] += 1
                except (AssertionError, ValueError, KeyError, jsonschema.ValidationError) as error:
                    counts[WRONG] += 1
                    wrong.append(f"{way}: {name}: {type(error).__name__}: {error}")
            print(f"{way}: {in_words(counts)}")
            if refusals:
                print("    the client refuses: " + "; ".join(refusals))
            sys.stdout.flush()
            total += counts
    finally:
        recorder.stop()
    print(f"{len(ways)} ways: {in_words(total)}")
    if wrong:
        raise AssertionError(f"{len(wrong)} requests went wrong:\n" + "\n".join(wrong))
    return total
