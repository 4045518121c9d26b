"""server_test.py PROGRAM: answers held to a form, as clients see them; and what becomes of them when their processes fail."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import jsonschema
import running_server
from hostile_forms import HOSTILE_FORMS
from running_server import LONG_ANSWERS, RunningServer, chat
from scripted_model import write_model

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                                           "role": {"enum": ["admin", "user"]}}, "required": ["name", "age", "role"], "additionalProperties": False}
PROMPT = "Count from 1 to 10 in French."
ENDLESS = {"grammar": 'root ::= ("one " | "two " | "three "){500,} "end"'}


def helpers(process):
    """Processes of tessera-constrain below this one, with how far below."""
    found, parents = {}, {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, rest = (folder / "stat").read_text().rsplit(")", 1)
            except OSError:
                continue
            if "tessera-constra" in name and rest.split()[0] not in "ZX":
                parents[int(folder.name)] = int(rest.split()[1])
    for pid in parents:
        depth, at = 0, pid
        while at in parents:
            depth, at = depth + 1, parents[at]
        if at == process.pid:
            found[pid] = depth
    return found


class Structure(unittest.TestCase):
    def setUp(self):
        self.server = RunningServer(*LONG_ANSWERS)
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)
        status, answer = self.ask(regex="a")
        if status == 501:
            self.skipTest(answer["error"]["message"])
        self.assertEqual(status, 200, answer)

    def ask(self, **fields):
        return self.server.request("POST", "/v1/completions", {"prompt": PROMPT, "max_tokens": 60, "seed": 1, **fields})

    def text(self, **fields):
        status, answer = self.ask(**fields)
        self.assertEqual(status, 200, answer)
        return answer["choices"][0]["text"]

    def later(self, **fields):
        """The answer of a request that runs: a function that waits for it."""
        result = []
        thread = threading.Thread(target=lambda: result.append(self.ask(**fields)))
        thread.start()
        return lambda: thread.join() or result[0]

    def wait_for_answer_process(self):
        found = []
        running_server.wait_for(lambda: found.extend(pid for pid, depth in helpers(self.server.process).items() if depth == 3) or found, "no process for the answer")
        time.sleep(0.1)
        return found[0]

    def test_forms(self):
        for temperature in (0, 1, 2):
            for fields in ({"json_schema": SCHEMA}, {"guided_json": json.dumps(SCHEMA)}, {"structured_outputs": {"json": SCHEMA}},
                           {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}},
                           {"response_format": {"type": "json_object", "schema": SCHEMA}}):
                jsonschema.validate(json.loads(self.text(temperature=temperature, **fields)), SCHEMA)
            self.assertRegex(self.text(temperature=temperature, regex="^[0-9]{3}-[0-9]{4}$"), r"\A[0-9]{3}-[0-9]{4}\Z")
            self.assertIn(self.text(temperature=temperature, choice=["red", "green"]), ("red", "green"))
            self.assertRegex(self.text(temperature=temperature, grammar='root ::= item+\nitem ::= "<" ("ab" | item) ">"', max_tokens=300), r"\A[<>ab]+")
        self.assertIsInstance(json.loads(self.text(response_format={"type": "json_object"}, max_tokens=300)), dict)
        status, answer = self.server.request("POST", "/v1/chat/completions", chat(response_format={"type": "json_schema", "json_schema": {"schema": SCHEMA}}, n=3, temperature=1, max_tokens=500))
        self.assertEqual(status, 200, answer)
        for choice in answer["choices"]:
            jsonschema.validate(json.loads(choice["message"]["content"]), SCHEMA)

    def test_cut_answers_say_length(self):
        for fields in ({"json_schema": SCHEMA}, ENDLESS):
            status, answer = self.ask(max_tokens=4, **fields)
            self.assertEqual((status, answer["choices"][0]["finish_reason"]), (200, "length"))

    def test_probabilities_change_no_text(self):
        plain = self.text(json_schema=SCHEMA, temperature=0)
        self.assertEqual(self.text(json_schema=SCHEMA, temperature=0, logprobs=2), plain)

    def test_refusals_name_what_they_mean(self):
        deep = {"type": "integer"}
        for _ in range(25):
            deep = {"items": deep, "type": "array"}
        for fields, param, part in (({"json_schema": {"not": {"type": "string"}}}, "json_schema", "not"), ({"json_schema": {"properties": {"a": {"uniqueItems": True}}}}, "json_schema", "properties/a/uniqueItems"),
                                    ({"json_schema": {"$ref": "http://x/y"}}, "json_schema", "$ref"), ({"json_schema": {"x-guidance": {"lenient": True}}}, "json_schema", "x-guidance"),
                                    ({"json_schema": {"minProperties": 2}}, "json_schema", "minProperties"), ({"json_schema": {"minlength": 1}}, "json_schema", "minLength"),
                                    ({"json_schema": {"type": "string", "format": 1}}, "json_schema", "format"), ({"unenforced": "maybe"}, "unenforced", "allow"), ({"grammar": "root ::= missing"}, "grammar", "missing"),
                                    ({"grammar": 'root ::= !<[5]>'}, "grammar", "!<"), ({"grammar": "root = x"}, "grammar", "line 1"), ({"regex": "a(?=b)"}, "regex", "ahead"),
                                    ({"choice": [""]}, "choice", "empty"), ({"regex": "a", "choice": ["b"]}, "choice", "regex"),
                                    ({"regex": "a", "ignore_eos": True}, "ignore_eos", "ends"), ({"json_schema": {"anyOf": [False]}}, "json_schema", "")):
            start = time.monotonic()
            status, answer = self.ask(**fields)
            self.assertEqual((status, answer["error"]["param"] if status != 200 else None), (400, param), (fields, answer))
            self.assertIn(part, answer["error"]["message"])
            self.assertLess(time.monotonic() - start, 20)
        self.assertEqual(self.ask(json_schema=deep)[0], 200)
        # Of no choice the field is none.
        self.assertEqual(self.ask(choice=[], max_tokens=2)[0], 200)

    def test_an_answers_process_that_is_killed_fails_it_alone(self):
        held, other = self.later(max_tokens=50000, **ENDLESS), self.later(max_tokens=200)
        os.kill(self.wait_for_answer_process(), signal.SIGKILL)
        status, answer = held()
        self.assertEqual((status, answer["error"]["code"]), (503, "structure_failed"), answer)
        self.assertIn("grammar has ended", answer["error"]["message"])
        self.assertEqual(other()[0], 200)
        self.assertEqual(self.text(regex="[0-9]{2}x")[2], "x")

    def test_an_answers_process_that_hangs_fails_it_alone(self):
        held = self.later(max_tokens=50000, **ENDLESS)
        stopped = self.wait_for_answer_process()
        os.kill(stopped, signal.SIGSTOP)
        count, start = 0, time.monotonic()
        while time.monotonic() - start < 3:
            self.assertEqual(self.ask(max_tokens=5)[0], 200)
            count += 1
        self.assertGreater(count, 0)
        status, answer = held()
        self.assertEqual((status, answer["error"]["code"]), (503, "structure_failed"), answer)
        self.assertIn("did not answer", answer["error"]["message"])
        running_server.wait_for(lambda: stopped not in helpers(self.server.process), "the process that hangs is still there")

    def test_signals_to_the_whole_service_end_no_answer(self):
        """The server answers what is under way when it is told to end, and so do its processes."""
        held = self.later(max_tokens=3000, **ENDLESS)
        self.wait_for_answer_process()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for pid in helpers(self.server.process):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        self.assertEqual(held()[0], 200)

    def test_the_first_process_is_started_again(self):
        for kind in (signal.SIGKILL, signal.SIGSTOP):
            first = [pid for pid, depth in helpers(self.server.process).items() if depth == 1]
            self.assertEqual(len(first), 1)
            os.kill(first[0], kind)
            self.assertEqual(self.text(choice=["yes"]), "yes")
            running_server.wait_for(lambda: first[0] not in helpers(self.server.process), "the first process is still there")

    def test_hostile_forms_beside_another_client(self):
        ended = threading.Event()
        slowest, statuses = [0.0], set()

        def other():
            while not ended.is_set():
                start = time.monotonic()
                statuses.add(self.ask(max_tokens=5)[0])
                slowest[0] = max(slowest[0], time.monotonic() - start)

        thread = threading.Thread(target=other)
        thread.start()
        for fields in HOSTILE_FORMS:
            start = time.monotonic()
            status, answer = self.ask(max_tokens=20, **fields)
            print(f"{str(fields)[:60]:62} {status} {time.monotonic() - start:5.2f} s  {answer.get('error', {}).get('message', answer.get('choices', [{}])[0].get('finish_reason'))[:90]!r}", flush=True)
            # 503: a process that had no CPU time, or that a sanitizer ended.
            self.assertIn(status, (200, 400, 503))
            self.assertTrue(self.server.alive())
        ended.set()
        thread.join()
        self.assertEqual(statuses, {200})
        print(f"the other client waited {slowest[0]:.2f} s at most", flush=True)


class Limits(unittest.TestCase):
    """Limits of the engine that an answer reaches after it has begun: the request is refused with the reason, in a stream by its last event."""

    def answers(self, server, schema):
        """Of each API: the status, or None in a stream, and the error of the answer that is held to the schema."""
        form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        hi = {"model": "x", "messages": [{"role": "user", "content": "hi"}]}
        for path, body in (("/v1/completions", {"prompt": "a", "max_tokens": 100, "json_schema": schema}), ("/v1/chat/completions", {**hi, "max_tokens": 100, "response_format": form}),
                           ("/v1/responses", {"input": "hi", "max_output_tokens": 100, "text": {"format": {"type": "json_schema", "name": "a", "schema": schema}}}),
                           ("/v1/messages", {**hi, "max_tokens": 100, "output_config": {"format": {"type": "json_schema", "schema": schema}}}),
                           ("/completion", {"prompt": "a", "n_predict": 100, "json_schema": schema}), ("/api/chat", {**hi, "options": {"num_predict": 100}, "format": schema})):
            for stream in (False, True):
                status, answer = server.request("POST", path, {**body, "stream": stream})
                if stream and status == 200:
                    events = [json.loads(line.removeprefix("data: ")) for line in answer.decode().splitlines() if line.startswith(("data: {", "{"))]
                    status, answer = None, events[-1].get("response", events[-1])
                yield path, status, answer["error"]

    def test_a_grammar_whose_rest_is_too_large(self):
        """Its beginning compiles; the value of "b" has more alternatives than llguidance takes at one place."""
        many = 1200
        schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]{10}$"}, "b": {"anyOf": [{"$ref": f"#/$defs/d{i}"} for i in range(many)]}},
                  "required": ["a", "b"], "additionalProperties": False,
                  "$defs": {f"d{i}": {"type": "object", "properties": {f"k{i}": {"$ref": f"#/$defs/d{i}"}}, "required": [f"k{i}"], "additionalProperties": False} for i in range(many)}}
        with RunningServer() as server:
            status, answer = server.request("POST", "/v1/completions", {"prompt": "a", "regex": "a"})
            if status == 501:
                self.skipTest(answer["error"]["message"])
            for path, status, error in self.answers(server, schema):
                self.assertIn(status, (400, None), path)
                self.assertRegex(str(error), "cannot be enforced in the rest of the answer.*items; max is.*simplify it")
            self.assertEqual(server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 5})[0], 200)

    def test_each_limit(self):
        real = pathlib.Path(running_server.PROGRAM).resolve().parents[1] / "lib" / "tessera" / "structured" / "libllguidance.so"
        failing = os.environ.get("TSR_FAILING_LLGUIDANCE")
        if not failing or not real.exists():
            self.skipTest(f"{real} is missing" if failing else "TSR_FAILING_LLGUIDANCE is not set: a build with sanitizers")
        with RunningServer("--structured-library", failing, environment={"TSR_TEST_LLGUIDANCE": str(real)}) as server:
            for word, message in (("spinning", "takes more than 500 ms of CPU time; simplify it"), ("growing", "needs more than 512 MiB of memory"), ("refusing", "too many items; simplify it"), ("dying", None)):
                for path, status, error in self.answers(server, {"type": "string", "pattern": f"^([a-z]{{20,60}}|{word})$"}):
                    limit = message is not None
                    # On a machine that is very busy 5 s pass before a process has had 500 ms of CPU time.
                    if "did not answer for 5 s" in str(error):
                        continue
                    self.assertIn(status, (400 if limit else 503, None))
                    self.assertIn(message if limit else "has ended", error["message"] if isinstance(error, dict) else error)
                    if path == "/v1/responses" and status is None:
                        self.assertEqual(error["code"], "invalid_prompt" if limit else "structure_failed")
                    elif path == "/v1/messages":
                        self.assertEqual(error["type"], "invalid_request_error" if limit else "overloaded_error")
                    elif path != "/api/chat":
                        self.assertEqual((error["type"], error["code"], bool(error["param"])), ("invalid_request_error", "structure_limit", True) if limit else ("unavailable_error", "structure_failed", True))
                self.assertEqual(server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 3, "regex": "[a-z]+"})[0], 200)


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


class Reasoning(unittest.TestCase):
    """The bundled model never ends its reasoning by itself."""

    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer("--chat-template", "qwen3", "--reasoning-budget", "16", *LONG_ANSWERS)
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def reasoning_tokens(self, **fields):
        status, answer = self.server.request("POST", "/v1/chat/completions", chat(max_tokens=120, **fields))
        self.assertEqual(status, 200, answer)
        return answer["usage"]["completion_tokens_details"]["reasoning_tokens"], answer["choices"][0]

    def test_budgets(self):
        marker = 12  # tokens that the closing marker may take
        self.assertLessEqual(self.reasoning_tokens()[0], 16 + marker)
        for name in ("reasoning_budget", "thinking_budget_tokens", "thinking_budget", "thinking_token_budget"):
            self.assertLessEqual(self.reasoning_tokens(**{name: 40})[0], 40 + marker)
        self.assertEqual(self.reasoning_tokens(reasoning_budget=0)[0], 0)
        status, answer = self.server.request("POST", "/v1/messages", {"model": "x", "max_tokens": 120, "messages": [{"role": "user", "content": "hi"}], "thinking": {"type": "enabled", "budget_tokens": 30}})
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.server.request("POST", "/v1/chat/completions", chat(reasoning_budget=-2))[0], 400)

    def test_what_has_to_come_is_reached(self):
        status, answer = self.server.request("POST", "/v1/completions", {"prompt": "a", "regex": "a"})
        if status == 501:
            self.skipTest(answer["error"]["message"])
        for budget in ({"reasoning_budget": -1}, {"reasoning_budget": 100000}, {}):
            _, choice = self.reasoning_tokens(tools=[TOOL], tool_choice="required", **budget)
            self.assertEqual(choice["message"]["tool_calls"][0]["function"]["name"], "f")
            _, choice = self.reasoning_tokens(response_format={"type": "json_schema", "json_schema": {"schema": {"enum": ["yes", "no"]}}}, **budget)
            self.assertIn(json.loads(choice["message"]["content"]), ("yes", "no"))

    def test_reasoning_of_a_running_answer_ends(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=running_server.LIMIT)
        connection.request("POST", "/v1/chat/completions", json.dumps(chat(max_tokens=50000, stream=True, reasoning_budget=-1)), {"Content-Type": "application/json"})
        response, ended = connection.getresponse(), None
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            part = json.loads(line[6:])
            delta = part["choices"][0]["delta"] if part["choices"] else {}
            if ended is None and delta.get("reasoning_content"):
                ended = self.server.request("POST", "/v1/chat/completions/control", {"id": part["id"], "action": "reasoning_end"})
                self.assertEqual(ended, (200, {"success": True}))
            if delta.get("content") or (part["choices"] and part["choices"][0]["finish_reason"] == "stop"):
                break
        else:
            self.fail("the reasoning did not end")
        connection.close()
        for fields, status in (({"id": "chatcmpl-none", "action": "reasoning_end"}, 404), ({"id": "x", "action": "jump"}, 400), ({"action": "reasoning_end"}, 400)):
            self.assertEqual(self.server.request("POST", "/v1/chat/completions/control", fields)[0], status)

    def test_availability_is_told(self):
        told = self.server.request("GET", "/props")[1]["structured_output"]
        line = "structured output is available" if told["available"] else "structured output is not available"
        self.assertTrue(any(one.startswith(line) for one in self.server.lines), self.server.lines)
        self.assertEqual(told["available"], not told["reason"])


class ReasoningThatCannotBeEnded(unittest.TestCase):
    """A vocabulary without the mark that ends reasoning, and without one of its characters."""

    def test_budgets_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scripted.gguf")
            write_model(path, [["<think>", "Hm, ", "weather."]], lacks="/")
            with RunningServer("-m", path, "--chat-template", "deepseek-v3.1", "--reasoning-budget", "5") as server:
                why = "the vocabulary cannot spell </think>, which ends reasoning"
                self.assertIn(f"--reasoning-budget has no effect: {why}\n", server.lines)
                self.assertEqual(server.request("GET", "/props")[1]["reasoning_budget"], {"tokens": 5, "enforced": False, "reason": why})
                for fields in ({}, {"reasoning_budget": -1}, {"thinking_budget": 0}):
                    self.assertEqual(server.request("POST", "/v1/chat/completions", chat(max_tokens=5, reasoning_effort="none" if fields.get("thinking_budget") == 0 else "high", **fields))[0], 200)
                for name in ("reasoning_budget", "thinking_budget_tokens", "thinking_budget", "thinking_token_budget"):
                    status, answer = server.request("POST", "/v1/chat/completions", chat(max_tokens=5, reasoning_effort="high", **{name: 3}))
                    self.assertEqual((status, answer["error"]["param"], answer["error"]["code"]), (400, name, "not_supported"))
                    self.assertIn("</think>", answer["error"]["message"])
                status, answer = server.request("POST", "/v1/messages", {"model": "x", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], "thinking": {"type": "enabled", "budget_tokens": 3}})
                self.assertEqual((status, answer["error"]["type"]), (400, "invalid_request_error"))
                self.assertIn("thinking.budget_tokens", answer["error"]["message"])
        with RunningServer("--chat-template", "qwen3", "--reasoning-budget", "5") as server:
            self.assertEqual(server.request("GET", "/props")[1]["reasoning_budget"], {"tokens": 5, "enforced": True, "reason": ""})


class LarkTools(unittest.TestCase):
    def test_calls_keep_to_the_grammar(self):
        with RunningServer("--chat-template", "qwen2.5") as server:
            def ask(definition, choice="required"):
                tool = {"type": "custom", "name": "calc", "description": "d", "format": {"type": "grammar", "syntax": "lark", "definition": definition}}
                return server.request("POST", "/v1/responses", {"input": "x", "max_output_tokens": 80, "tool_choice": choice, "tools": [tool]})

            status, answer = ask('start: "<" NUMBER "\\n\\"" ">"\nNUMBER: /[0-9]{1,4}/')
            if status == 501:
                self.skipTest(answer["error"]["message"])
            self.assertEqual(status, 200, answer)
            for item in answer["output"]:
                self.assertRegex(item["input"], r'\A<[0-9]+\n">\Z')
            status, answer = ask("start: x")
            self.assertEqual(status, 400)
            self.assertIn("'x' is used and not defined", answer["error"]["message"])
            self.assertEqual(ask("start: x", "auto")[0], 200)


class WithoutLibrary(unittest.TestCase):
    def test_the_command_is_named(self):
        program = pathlib.Path(running_server.PROGRAM).resolve()
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "bin" / "tessera-server"
            copy.parent.mkdir()
            shutil.copy(program, copy)
            model = next((pathlib.Path(__file__).resolve().parents[2] / "models").glob("demo-*.gguf"))
            plugins = program.parents[1] / "lib" / "tessera" / "plugins"
            kept, running_server.PROGRAM = running_server.PROGRAM, str(copy)
            try:
                with RunningServer("-m", str(model), "--plugin-dir", str(plugins)) as server:
                    status, answer = server.request("POST", "/v1/completions", {"prompt": "a", "regex": "a"})
                    self.assertEqual((status, answer["error"]["code"]), (501, "not_installed"))
                    self.assertIn("tools/setup --structured", answer["error"]["message"])
                    told = server.request("GET", "/props")[1]["structured_output"]
                    self.assertFalse(told["available"])
                    self.assertIn("is missing", told["reason"])
                    self.assertTrue(any("structured output is not available" in line for line in server.lines))
                    self.assertEqual(server.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2})[0], 200)
            finally:
                running_server.PROGRAM = kept
            copy.rename(copy.with_name("tessera"))
            ended = subprocess.run([copy.with_name("tessera"), "run", "-m", model, "--plugin-dir", plugins, "-p", "a", "-j", "{}"], capture_output=True, text=True)
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn("tools/setup --structured", ended.stderr)


if __name__ == "__main__":
    running_server.main()
