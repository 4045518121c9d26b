"""The openai client against /v1/responses, and a request as Codex sends it."""

import json
import typing
import unittest

import openai
import pydantic

import running_server
from running_server import RunningServer
from scripted_server import ScriptedServer

QUESTION = "How is the weather in Paris?"
TOOL = {"type": "function", "name": "get_weather", "description": "Weather of a city", "strict": False,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}}
COUNT = "Count from 1 to 10 in French."
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"


def client_of(server):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)


class Scripted(ScriptedServer):
    client_of = staticmethod(client_of)

    def ask(self, given, **more):
        return self.client.responses.create(model="any", input=given, **{"tools": [TOOL], **more})

    def test_a_call_and_the_answer_to_its_result(self):
        first = self.ask(QUESTION)
        self.assertEqual(first.status, "completed")
        message, call = first.output
        self.assertEqual((message.type, message.content[0].text, first.output_text), ("message", "Let me look.", "Let me look."))
        self.assertEqual((call.type, call.name, json.loads(call.arguments)), ("function_call", "get_weather", {"city": "Paris"}))
        # The items go back as the client has them.
        answer = self.ask([{"role": "user", "content": QUESTION}, *first.output,
                           {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}])
        self.assertEqual(answer.output_text, "It is sunny.")
        self.assertEqual(answer.tools[0].name, "get_weather")
        self.assertEqual(answer.usage.total_tokens, answer.usage.input_tokens + answer.usage.output_tokens)

    def test_events_of_a_stream(self):
        with self.client.responses.stream(model="any", input=QUESTION, tools=[TOOL], reasoning={"effort": "high"},
                                          include=["reasoning.encrypted_content"]) as stream:
            events = list(stream)
            final = stream.get_final_response()
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        kinds = [event.type for event in events]
        self.assertEqual(list(dict.fromkeys(kinds)),
                         ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                          "response.reasoning_text.delta", "response.reasoning_text.done", "response.content_part.done", "response.output_item.done",
                          "response.output_text.delta", "response.output_text.done", "response.function_call_arguments.delta",
                          "response.function_call_arguments.done", "response.completed"])
        self.assertEqual([kinds.count(f"response.output_item.{what}") for what in ("added", "done")], [3, 3])
        done = [event.item for event in events if event.type == "response.output_item.done"]
        self.assertEqual([item.id for item in done], [item.id for item in final.output])
        self.assertEqual([event.output_index for event in events if event.type == "response.output_item.added"], [0, 1, 2])
        reasoning, message, call = final.output
        self.assertEqual((reasoning.content[0].text, message.content[0].text, json.loads(call.arguments)), ("Hm, weather.", "Let me look.", {"city": "Paris"}))
        pieces = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
        self.assertEqual("".join(pieces), call.arguments)
        self.assertGreater(len(pieces), 1)
        self.assertGreater(final.usage.output_tokens_details.reasoning_tokens, 1)
        self.assertGreater(final.usage.output_tokens, final.usage.output_tokens_details.reasoning_tokens)
        # A client that keeps no content, as Codex does, still sends the reasoning back.
        self.assertIn("Hm, weather.", reasoning.encrypted_content)

    def test_a_codex_request(self):
        """As openai/codex sends it (codex-rs: ResponsesApiRequest, ResponseItem): all fields, with a result of a tool."""
        body = {"model": "any", "instructions": "You are a coding agent.", "stream": True, "store": False, "tool_choice": "auto",
                "parallel_tool_calls": False, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "019a-thread",
                "reasoning": {"effort": "medium", "summary": "auto"}, "text": {"verbosity": "medium"}, "service_tier": None,
                "client_metadata": {"x-codex-installation-id": "0"},
                "tools": [TOOL, {"type": "function", "name": "shell", "description": "Runs a command", "strict": False,
                                 "parameters": {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}},
                                                "required": ["command"], "additionalProperties": False}}],
                "input": [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions instructions>"}]},
                          {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
                          {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]}

        def events(body):
            status, text = self.server.request("POST", "/v1/responses", body, {"Accept": "text/event-stream", "originator": "codex_cli_rs"})
            self.assertEqual(status, 200, text)
            return [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ")]

        first = events(body)
        items = [event["item"] for event in first if event["type"] == "response.output_item.done"]
        self.assertEqual([item["type"] for item in items], ["reasoning", "message", "function_call"])
        # Codex keeps reasoning without its content.
        items[0].pop("content")
        call = items[2]
        body["input"] += [*items, {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}]
        last = events(body)[-1]
        self.assertEqual(last["type"], "response.completed")
        self.assertEqual(last["response"]["output"][-1]["content"][0]["text"], "It is sunny.")
        for field in ("input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details"):
            self.assertIn(field, last["response"]["usage"])
        # What the conversation begins with was computed once.
        self.assertGreater(last["response"]["usage"]["input_tokens_details"]["cached_tokens"], 50)

    def test_functions_in_namespaces(self):
        """As Codex 0.163 sends its tools for agents."""
        group = {"type": "namespace", "name": "get", "description": "What there is to get.",
                 "tools": [{**TOOL, "name": "weather"}, {**TOOL, "name": "time", "strict": False}]}
        # The model knows the functions of the namespace by other names. The script calls get_weather: without structured
        # output that is told as it is, else the call is one that is offered.
        answer = self.ask(QUESTION, tools=[group])
        [call] = [item for item in answer.output if item.type == "function_call"]
        held = self.server.request("GET", "/props")[1]["structured_output"]["available"]
        self.assertIn((call.name, getattr(call, "namespace", None)), [("weather", "get"), ("time", "get")] if held else [("get_weather", None)])
        grouped = {"type": "function_call", "call_id": "1", "name": "weather", "namespace": "get", "arguments": '{"city": "Paris"}'}
        plain = {**grouped, "name": "get__weather"}
        del plain["namespace"]
        used = [self.ask([{"role": "user", "content": QUESTION}, call, {"type": "function_call_output", "call_id": "1", "output": "sunny"}],
                         tools=[group]).usage.input_tokens for call in (grouped, plain)]
        self.assertEqual(used[0], used[1])
        # Held to such a call, the answer tells it by both of its names, which tool_choice has, too.
        empty = {**group, "tools": [{**TOOL, "name": "time", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}]}
        try:
            held = self.ask(QUESTION, tools=[empty], tool_choice={"type": "function", "name": "time", "namespace": "get"})
            [call] = held.output
            self.assertEqual((call.name, call.namespace, json.loads(call.arguments)), ("time", "get", {}))
        except openai.InternalServerError as error:
            if error.status_code != 501:
                raise
        for tools, part in (([group, {**TOOL, "name": "get__time"}], "get__time"), ([TOOL, {"type": "custom", "name": "get_weather"}], "get_weather"),
                            ([{"type": "custom", "name": "patch"}] * 2, "patch"), ([{**group, "name": ""}], "tools[0].name"),
                            ([{**group, "tools": [{"type": "web_search", "name": "patch"}]}], "tools[0].tools[0]"),
                            ([{"type": "namespace", "name": "get"}], "tools[0].tools")):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask(QUESTION, tools=tools)
            self.assertIn(part, raised.exception.body["message"])

    def test_tools_that_are_called_with_a_text(self):
        """As Codex sends apply_patch, whose text a Lark grammar describes."""
        lark = 'start: begin_patch hunk+ end_patch\nbegin_patch: "*** Begin Patch" LF\n%import common.LF'
        patch = {"type": "custom", "name": "apply_patch", "description": "Edits files.",
                 "format": {"type": "grammar", "syntax": "lark", "definition": lark}}

        def used(*items, tools=(patch,)):
            return self.ask([{"role": "user", "content": QUESTION}, *items], tools=list(tools)).usage.input_tokens
        # The model reads the grammar, and a call as that of a function.
        self.assertGreater(used(), used(tools=[{**patch, "format": {"type": "text"}}]) + 10)
        output = {"call_id": "1", "output": [{"type": "input_text", "text": "Done."}]}
        self.assertEqual(used({"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": "a \"b\"\n"},
                              {"type": "custom_tool_call_output", **output}),
                         used({"type": "function_call", "call_id": "1", "name": "apply_patch", "arguments": json.dumps({"input": "a \"b\"\n"}, separators=(",", ":"))},
                              {"type": "function_call_output", **output}))
        [call] = [item for item in self.ask(QUESTION, tools=[{**patch, "name": "get_weather", "format": {"type": "text"}}]).output if item.type != "message"]
        self.assertEqual((call.type, call.name), ("custom_tool_call", "get_weather"))
        for wrong, part in (({"name": ""}, "tools[0].name"), ({"format": {"type": "pdf"}}, "tools[0].format.type"),
                            ({"format": {"type": "text", "syntax": "lark"}}, "tools[0].format.syntax"),
                            ({"format": {"type": "grammar", "syntax": "ebnf", "definition": "a"}}, "tools[0].format.syntax"),
                            ({"format": {"type": "grammar", "syntax": "lark"}}, "tools[0].format.definition"), ({"parameters": {}}, "tools[0].parameters")):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask(QUESTION, tools=[{**patch, **wrong}])
            self.assertIn(part, raised.exception.body["message"])

    def test_fields_of_later_clients(self):
        """As openai 3.57 and instructor send them: items as the client dumps them, a form beside a tool that has to be called."""
        call = {"type": "function_call", "id": "fc_1", "call_id": "1", "name": "get_weather", "arguments": "{}", "status": "completed", "namespace": None, "caller": {"type": "direct"}}
        output = {"type": "function_call_output", "id": None, "call_id": "1", "name": "get_weather", "namespace": "get", "caller": {"type": "direct"}, "status": None,
                  "output": [{"type": "input_text", "text": "sun"}, {"type": "input_text", "text": "ny"}]}
        body = {"model": "any", "input": [{"role": "user", "content": QUESTION}, call, output], "include": ["web_search_call.action.sources", "file_search_call.results"],
                "prompt_cache_options": {"mode": "implicit", "ttl": "30m"}, "moderation": None, "reasoning": {"effort": "max", "mode": "standard", "context": "auto"},
                "tools": [{**TOOL, "allowed_callers": ["direct"]}]}
        status, answer = self.server.request("POST", "/v1/responses", body)
        self.assertEqual((status, answer["output"][-1]["content"][0]["text"]), (200, "It is sunny."), answer)
        self.ask([{"role": "user", "content": QUESTION}, {"type": "custom_tool_call", "call_id": "1", "name": "patch", "namespace": "files", "input": "a", "caller": {"type": "direct"}},
                  {"type": "custom_tool_call_output", "call_id": "1", "output": "b", "name": "patch", "namespace": "files", "caller": {"type": "direct"}}])
        form = {"format": {"type": "json_schema", "name": "Weather", "strict": True, "schema": TOOL["parameters"]}}
        try:
            [call] = self.ask(QUESTION, text=form, tool_choice={"type": "function", "name": "get_weather"}, temperature=1, max_output_tokens=300, extra_body={"seed": 1}).output
        except openai.InternalServerError as error:
            if error.status_code != 501:
                raise
            self.skipTest(str(error))
        self.assertEqual((call.type, call.name), ("function_call", "get_weather"))

    def test_images_of_tools(self):
        """As Codex sends an image that its tool view_image has read: were it refused, so would be all that follows."""
        def used(output):
            return self.ask([{"role": "user", "content": QUESTION}, {"type": "function_call", "call_id": "1", "name": "get_weather", "arguments": "{}"},
                             {"type": "function_call_output", "call_id": "1", "output": output}]).usage.input_tokens
        image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "high"}
        self.assertEqual(used([{"type": "input_text", "text": "a"}, image]), used("a\n[image, which cannot be shown: text alone is read here]"))
        with self.assertRaises(openai.BadRequestError) as raised:
            used([{"type": "input_audio"}])
        self.assertIn("input[2].output[0]", str(raised.exception))

    def test_calls_with_a_text_are_held_to_a_pattern(self):
        text = '*** Begin "Patch"\n+a\\b'
        pattern = r'\*\*\* Begin "Patch"\n\+a\\b'
        tool = {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "regex", "definition": pattern}}
        group = {"type": "namespace", "name": "files", "tools": [tool]}
        for tools, choice, where in (([tool], {}, None), ([TOOL, group], {"namespace": "files"}, "files")):
            asked = {"tools": tools, "tool_choice": {"type": "custom", "name": "patch", **choice}}
            try:
                whole = self.ask(QUESTION, **asked)
                [call] = whole.output
            except openai.InternalServerError as error:
                if error.status_code == 501:
                    self.skipTest(str(error))
                raise
            self.assertEqual((call.type, call.name, call.input, getattr(call, "namespace", None)), ("custom_tool_call", "patch", text, where))
            events = list(self.ask(QUESTION, stream=True, **asked))
            *deltas, done = [event for event in events if "input" in event.type]
            self.assertEqual((done.type, done.input, "".join(event.delta for event in deltas)), ("response.custom_tool_call_input.done", text, text))
            self.assertGreater(len(deltas), 3)
            self.assertEqual([event.item.input for event in events if event.type.startswith("response.output_item.")], ["", text])
            [item] = events[-1].response.output
            self.assertEqual((item.type, item.input, item.id), ("custom_tool_call", text, next(event.item_id for event in events if "input" in event.type)))

        # Cut, it is the text so far.
        asked["max_output_tokens"] = whole.usage.output_tokens - 65
        cut = self.ask(QUESTION, **asked)
        [call] = cut.output
        self.assertEqual((cut.status, call.status), ("incomplete", "incomplete"))
        self.assertTrue(text.startswith(call.input) and 2 < len(call.input) < len(text), call.input)
        events = list(self.ask(QUESTION, stream=True, **asked))
        *deltas, done = [event for event in events if "input" in event.type]
        self.assertEqual([done.input, "".join(event.delta for event in deltas), events[-1].response.output[0].input], [call.input] * 3)
        # As OpenAI's documentation has one.
        dates = {"type": "custom", "name": "date", "format": {"type": "grammar", "syntax": "regex", "definition": r"^(?P<month>January|February)\s+(?P<day>\d{1,2})$"}}
        [call] = self.ask(QUESTION, tools=[dates], tool_choice={"type": "custom", "name": "date"}, temperature=1, extra_body={"seed": 1}).output
        self.assertRegex(call.input, r"^(January|February)\s+\d{1,2}$")

    def test_a_text_of_a_form_that_spells_a_call(self):
        spelt = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        form = {"format": {"type": "json_schema", "name": "Spelt", "schema": {"const": spelt}}}
        try:
            answer = self.ask(QUESTION, text=form)
        except openai.InternalServerError as error:
            if error.status_code == 501:
                self.skipTest(str(error))
            raise
        self.assertEqual(([item.type for item in answer.output], json.loads(answer.output_text)), (["message"], spelt))

    def test_reasoning_that_is_sent_back_is_in_the_prompt(self):
        def prompt(*items):
            answer = self.ask([{"role": "user", "content": QUESTION}, *items, {"type": "function_call", "call_id": "1", "name": "get_weather", "arguments": "{}"},
                               {"type": "function_call_output", "call_id": "1", "output": "sunny"}])
            return answer.usage.input_tokens
        item = {"type": "reasoning", "id": "rs_1", "summary": []}
        plain = prompt({**item, "encrypted_content": "of another server"})
        self.assertEqual(plain, prompt())
        self.assertEqual(prompt({**item, "content": [{"type": "reasoning_text", "text": "Hm."}]}),
                         prompt({**item, "encrypted_content": "tessera-reasoning:Hm."}))

    def test_hints(self):
        raw = self.client.responses.with_raw_response.create(model="any", input="x", max_output_tokens=1, truncation="auto", store=True, text={"verbosity": "low"})
        self.assertEqual((raw.parse().truncation, set(raw.headers["x-tessera-no-effect"].split(", "))), ("disabled", {"truncation", "store", "text.verbosity"}))
        plain = self.client.responses.with_raw_response.create(model="any", input="x", max_output_tokens=1, truncation="disabled", store=False)
        self.assertNotIn("x-tessera-no-effect", plain.headers)
        # As sglang-router sends them.
        status, answer = self.server.request("POST", "/v1/responses", {"input": "x", "max_output_tokens": 1, "store": True, "stream": None, "temperature": 1.0, "top_p": 1.0,
                                                                       "priority": 0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0})
        self.assertEqual(status, 200, answer)

    def test_what_is_not_offered(self):
        for more, part in (({"previous_response_id": "resp_1"}, "previous_response_id"), ({"background": True}, "background"),
                           ({"conversation": "conv_1"}, "conversation"), ({"extra_body": {"truncation": "middle"}}, "truncation"),
                           ({"extra_body": {"nonsense": 1}}, "nonsense"), ({"include": ["message.output_text.logprobs"]}, "include"), ({"include": ["nonsense"]}, "reasoning.encrypted_content"),
                           ({"extra_body": {"prompt_cache_options": {"prewarm": True}}}, "max_output_tokens"), ({"extra_body": {"reasoning": {"mode": "pro"}}}, "reasoning.mode"),
                           ({"extra_body": {"moderation": {"model": "any"}}}, "moderation"),
                           ({"tool_choice": {"type": "function", "name": "nobody"}}, "nobody")):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask(QUESTION, **more)
            self.assertIn(part, str(raised.exception))
        for kind in ("web_search", "file_search", "local_shell", "mcp"):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.client.responses.create(model="any", input=QUESTION, tools=[{"type": kind}])
            self.assertEqual((raised.exception.body["param"], raised.exception.body["code"]), ("tools[0]", "not_supported"))
            self.assertIn(kind, str(raised.exception))
        for item in ({"type": "item_reference", "id": "msg_1"}, {"type": "local_shell_call", "call_id": "1"},
                     {"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask([item])
            self.assertIn("input[0]", str(raised.exception))
        with self.assertRaises(openai.InternalServerError) as raised:
            self.client.responses.retrieve("resp_1")
        self.assertEqual(raised.exception.status_code, 501)
        self.assertIn("not kept", str(raised.exception))


class Chosen(pydantic.BaseModel):
    colour: typing.Literal["red", "green"]
    even: bool


class Bundled(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer("--temp", "0").__enter__()
        cls.client = client_of(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__()

    def test_text_and_stream(self):
        for given in (COUNT, [{"role": "user", "content": COUNT}], [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": COUNT}]}]):
            answer = self.client.responses.create(model="any", input=given)
            self.assertEqual((answer.output_text, answer.status, answer.usage.output_tokens, answer.usage.output_tokens_details.reasoning_tokens), (ANSWER, "completed", 20, 0))
        text = "".join(event.delta for event in self.client.responses.create(model="any", input=COUNT, stream=True) if event.type == "response.output_text.delta")
        self.assertEqual(text, ANSWER)

    def test_instructions_are_the_systems_message(self):
        one = self.client.responses.create(model="any", instructions="Be brief.", input=COUNT, max_output_tokens=1)
        other = self.client.responses.create(model="any", input=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": COUNT}], max_output_tokens=1)
        chat = self.client.chat.completions.create(model="any", messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": COUNT}], max_tokens=1)
        self.assertEqual({one.usage.input_tokens, other.usage.input_tokens}, {chat.usage.prompt_tokens})
        self.assertEqual(one.instructions, "Be brief.")

    def test_an_answer_that_is_cut(self):
        answer = self.client.responses.create(model="any", input=COUNT, max_output_tokens=4)
        self.assertEqual((answer.status, answer.incomplete_details.reason, answer.output_text, answer.output[0].status), ("incomplete", "max_output_tokens", "un, deux,", "incomplete"))
        last = list(self.client.responses.create(model="any", input=COUNT, max_output_tokens=4, stream=True))[-1]
        self.assertEqual((last.type, last.response.status), ("response.incomplete", "incomplete"))
        empty = self.client.responses.create(model="any", input=COUNT, max_output_tokens=0)
        self.assertEqual((empty.status, empty.output_text), ("incomplete", ""))

    def test_an_answer_that_was_begun(self):
        answer = self.client.responses.create(model="any", input=[{"role": "user", "content": COUNT}, {"role": "assistant", "content": "un, deux,"}])
        self.assertTrue(answer.output_text.endswith("neuf, dix"), answer.output_text)
        self.assertFalse(answer.output_text.startswith("un"), answer.output_text)

    def test_answers_of_a_given_form(self):
        try:
            parsed = self.client.responses.parse(model="any", input=COUNT, text_format=Chosen, max_output_tokens=100, temperature=1, top_p=0.9)
        except openai.InternalServerError as error:
            if error.status_code == 501:
                self.skipTest(str(error))
            raise
        self.assertEqual(parsed.status, "completed")
        self.assertIsInstance(parsed.output_parsed, Chosen)
        answer = self.client.responses.create(model="any", input=COUNT, text={"format": {"type": "json_object"}}, max_output_tokens=40)
        self.assertTrue(answer.output_text.startswith("{"), answer.output_text)
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.responses.create(model="any", input=COUNT, text={"format": {"type": "json_schema", "name": "a", "schema": {"not": {}}}})
        self.assertEqual(raised.exception.body["param"], "text.format.schema")

    def test_a_prompt_that_is_too_long(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.responses.create(model="any", input="long " * 5000)
        self.assertEqual(raised.exception.body["code"], "context_length_exceeded")


if __name__ == "__main__":
    running_server.main()
