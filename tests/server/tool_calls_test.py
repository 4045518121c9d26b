"""Calls of tools and reasoning through the openai client, by a model whose answers are a script."""

import json
import os
import tempfile
import unittest

import openai
from openai.types.chat import ChatCompletionCustomToolParam, ChatCompletionMessageCustomToolCall

import running_server
from running_server import RunningServer
from scripted_model import write_model
from scripted_server import ScriptedServer

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "strict": False,
                                         "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
QUESTION = {"role": "user", "content": "How is the weather in Paris?"}


class ToolCalls(ScriptedServer):
    @staticmethod
    def client_of(server):
        return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)

    def ask(self, messages, **more):
        return self.client.chat.completions.create(model="any", messages=messages, tools=[TOOL], **more)

    def test_a_call_and_the_answer_to_its_result(self):
        choice = self.ask([QUESTION]).choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertEqual(choice.message.content, "Let me look.")
        [call] = choice.message.tool_calls
        self.assertEqual((call.type, call.function.name), ("function", "get_weather"))
        self.assertEqual(json.loads(call.function.arguments), {"city": "Paris"})
        # The message goes back as the client has it.
        answer = self.ask([QUESTION, choice.message, {"role": "tool", "tool_call_id": call.id, "content": "sunny, 20 degrees"}]).choices[0]
        self.assertEqual((answer.finish_reason, answer.message.content, answer.message.tool_calls), ("stop", "It is sunny.", None))

    def test_a_streamed_call(self):
        content, name, arguments, ids, finish = "", "", "", set(), None
        deltas = 0
        for chunk in self.ask([QUESTION], stream=True):
            for choice in chunk.choices:
                content += choice.delta.content or ""
                finish = choice.finish_reason or finish
                for call in choice.delta.tool_calls or []:
                    self.assertEqual(call.index, 0)
                    if call.id:
                        ids.add(call.id)
                    name += call.function.name or ""
                    arguments += call.function.arguments or ""
                    deltas += bool(call.function.arguments)
        self.assertEqual((content, name, finish, len(ids)), ("Let me look.", "get_weather", "tool_calls", 1))
        self.assertEqual(json.loads(arguments), {"city": "Paris"})
        self.assertGreater(deltas, 1, "arguments came in one delta, though the model wrote several")

    def test_the_clients_own_helper(self):
        self.held([QUESTION], self.strict(), max_tokens=1)  # the client parses arguments of strict tools alone
        with self.client.beta.chat.completions.stream(model="any", messages=[QUESTION], tools=[self.strict()]) as stream:
            final = stream.get_final_completion()
        [call] = final.choices[0].message.tool_calls
        self.assertEqual(call.function.parsed_arguments, {"city": "Paris"})

    def test_reasoning_is_apart(self):
        for more in ({"reasoning_effort": "high"}, {"extra_body": {"chat_template_kwargs": {"thinking": True}}}):
            message = self.ask([QUESTION], **more).choices[0].message
            self.assertEqual((message.reasoning_content, message.content), ("Hm, weather.", "Let me look."))
            self.assertEqual(message.tool_calls[0].function.name, "get_weather")
        message = self.ask([QUESTION], reasoning_effort="none").choices[0].message
        self.assertEqual(getattr(message, "reasoning_content", None), None)

    def test_without_tools_calls_are_text(self):
        choice = self.client.chat.completions.create(model="any", messages=[QUESTION]).choices[0]
        self.assertEqual((choice.finish_reason, choice.message.tool_calls), ("stop", None))
        self.assertIn("get_weather", choice.message.content)

    def test_what_is_not_offered(self):
        for more in ({"tool_choice": "always"}, {"tool_choice": {"type": "function", "function": {"name": "other"}}},
                     {"tool_choice": "auto", "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"not": {}}}}}):
            with self.assertRaises(openai.APIStatusError) as raised:
                self.ask([QUESTION], **more)
            self.assertEqual(raised.exception.status_code, 400, more)
        with self.assertRaises(openai.BadRequestError):
            self.ask([QUESTION], reasoning_effort="huge")
        called = {"role": "assistant", "tool_calls": [{"id": "1", "type": "web_search", "web_search": {}}]}
        for body, where in (({"messages": [QUESTION], "tools": [{"type": "web_search"}]}, "tools[0]"), ({"messages": [QUESTION, called]}, "messages[1].tool_calls[0]")):
            status, answer = self.server.request("POST", "/v1/chat/completions", body)
            self.assertEqual((status, answer["error"]["param"], answer["error"]["code"]), (400, where, "not_supported"))
            self.assertIn("function or custom", answer["error"]["message"])
        for parallel in (True, False):
            choice = self.ask([QUESTION], parallel_tool_calls=parallel, max_tokens=-1).choices[0]
            self.assertEqual((choice.finish_reason, len(choice.message.tool_calls)), ("tool_calls", 1))

    def test_allowed_tools_that_may_be_called(self):
        other = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}}
        ask = {"model": "any", "messages": [QUESTION]}
        answer = self.client.chat.completions.create(**ask, tools=[other, TOOL], tool_choice=allowed)
        self.assertEqual(answer.choices[0].message.tool_calls[0].function.name, "get_weather")
        # The model is told of no other.
        self.assertEqual(answer.usage.prompt_tokens, self.client.chat.completions.create(**ask, tools=[TOOL]).usage.prompt_tokens)
        items = [{"type": "function", "name": "get_weather", "parameters": TOOL["function"]["parameters"]}, {"type": "function", "name": "now", "parameters": {}}]
        answer = self.client.responses.create(model="any", input=[QUESTION], tools=items, tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]})
        self.assertIn("get_weather", [item.name for item in answer.output if item.type == "function_call"])
        allowed["allowed_tools"]["tools"][0]["function"]["name"] = "nobody"
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.chat.completions.create(**ask, tools=[other, TOOL], tool_choice=allowed)
        self.assertIn("nobody", str(raised.exception))

    def test_calls_that_are_asked_for(self):
        """The script would not call anything after this question, and other arguments than the schema has."""
        asked = {"role": "tool", "tool_call_id": "1", "content": "sunny"}
        before = [QUESTION, {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]}, asked]
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}},
                       {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}}):
            try:
                answer = self.ask(before, tool_choice=choice, parallel_tool_calls=False, max_tokens=300, temperature=1, seed=2).choices[0]
            except openai.APIStatusError as error:
                if error.status_code == 501:
                    self.skipTest(str(error))
                raise
            self.assertEqual(answer.message.content, None)
            if answer.finish_reason == "length":
                continue
            self.assertEqual(answer.finish_reason, "tool_calls")
            [call] = answer.message.tool_calls
            self.assertEqual(call.function.name, "get_weather")
            self.assertIsInstance(json.loads(call.function.arguments)["city"], str)

    @staticmethod
    def strict():
        made = json.loads(json.dumps(TOOL))
        made["function"]["strict"] = True
        return made

    def held(self, messages, tool, **more):
        try:
            return self.client.chat.completions.create(model="any", messages=messages, tools=[tool], **more).choices[0]
        except openai.APIStatusError as error:
            if error.status_code == 501:
                self.skipTest(str(error))
            raise

    def test_a_strict_tool_is_held_to_its_schema_when_it_is_called(self):
        """The script would call it with Paris."""
        strict = self.strict()
        strict["function"]["parameters"]["additionalProperties"] = False
        strict["function"]["parameters"]["properties"]["city"]["enum"] = ["Rome", "Oslo"]
        for more in ({}, {"parallel_tool_calls": False}, {"extra_body": {"chat_template_kwargs": {"thinking": True}}}):
            choice = self.held([QUESTION], strict, **more)
            self.assertEqual((choice.finish_reason, choice.message.content), ("tool_calls", "Let me look."))
            [call] = choice.message.tool_calls
            self.assertIn(json.loads(call.function.arguments)["city"], ("Rome", "Oslo"))
        after = [QUESTION, choice.message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        self.assertEqual(self.held(after, strict).message.content, "It is sunny.")
        strict["function"]["parameters"]["properties"]["city"]["not"] = {"const": "Rome"}
        with self.assertRaises(openai.BadRequestError) as raised:
            self.held([QUESTION], strict)
        self.assertIn("tools: the tool 'get_weather': the schema's properties/city/not", str(raised.exception))
        self.assertEqual(raised.exception.param, "tools")

    def test_a_tool_that_is_not_strict_is_held_as_far_as_that_is_possible(self):
        tool = json.loads(json.dumps(TOOL))
        tool["function"]["parameters"]["properties"]["city"].update({"enum": ["Rome", "Oslo"], "not": {"const": "Rome"}})

        def ask(**more):
            raw = self.client.chat.completions.with_raw_response.create(model="any", messages=[QUESTION], tools=[tool], **more)
            return raw.parse().choices[0], raw.headers.get("x-tessera-unenforced")

        choice, left_out = ask()
        if left_out == "tools.get_weather":
            self.skipTest("llguidance is not installed")
        self.assertEqual(left_out, "tools.get_weather/properties/city/not")
        [call] = choice.message.tool_calls
        self.assertIn(json.loads(call.function.arguments)["city"], ("Rome", "Oslo"))
        # Of the tokens that the schema leaves all may be forbidden here: the call is the script's.
        choice, left_out = ask(max_tokens=40, extra_body={"ignore_eos": True})
        self.assertEqual(left_out, "tools.get_weather")
        [call] = choice.message.tool_calls
        self.assertEqual(json.loads(call.function.arguments)["city"], "Paris")

    def test_one_call_where_the_client_wants_one(self):
        choice = self.held([QUESTION], TOOL, parallel_tool_calls=False)
        self.assertEqual((choice.finish_reason, choice.message.content, len(choice.message.tool_calls)), ("tool_calls", "Let me look.", 1))

    def test_calls_or_an_answer_of_a_given_form(self):
        """As agents ask whose last answer has a form. The script would begin with a text."""
        form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {
            "type": "object", "properties": {"sun": {"type": "boolean"}}, "required": ["sun"], "additionalProperties": False}}}
        for tool in (TOOL, self.strict()):
            choice = self.held([QUESTION], tool, response_format=form)
            self.assertEqual((choice.finish_reason, choice.message.tool_calls), ("stop", None))
            self.assertIsInstance(json.loads(choice.message.content)["sun"], bool)
            # Where the model would rather call.
            [begin] = self.server.request("POST", "/tokenize", {"content": "<｜tool▁calls▁begin｜>"})[1]["tokens"]
            for more in ({"logit_bias": {str(begin): 50}}, {"tool_choice": "required", "parallel_tool_calls": False}):
                choice = self.held([QUESTION], tool, response_format=form, **more)
                self.assertEqual((choice.finish_reason, choice.message.content), ("tool_calls", None))
                [call] = choice.message.tool_calls
                self.assertEqual(call.function.name, "get_weather")
        with self.assertRaises(openai.BadRequestError) as raised:
            self.ask([QUESTION, {"role": "assistant", "content": "It is"}], response_format=form)
        self.assertEqual(raised.exception.param, "response_format.json_schema.schema")

    @staticmethod
    def custom(name="patch", **more):
        made: ChatCompletionCustomToolParam = {"type": "custom", "custom": {"name": name, "description": "Edits files.", **more}}
        return made

    def ask_custom(self, messages, tools, **more):
        try:
            return self.client.chat.completions.create(model="any", messages=messages, tools=tools, **more)
        except openai.APIStatusError as error:
            if error.status_code == 501:
                self.skipTest(str(error))
            raise

    def test_custom_tools_are_called_with_a_string(self):
        """The model calls the tool with other arguments than the function has that stands for it: they are the input. A token that is
        forbidden keeps the answer free."""
        tools = [self.custom("get_weather")]
        answer = self.client.chat.completions.create(model="any", messages=[QUESTION], tools=tools, logit_bias={"0": -100})
        choice = answer.choices[0]
        [call] = choice.message.tool_calls
        self.assertIsInstance(call, ChatCompletionMessageCustomToolCall)
        self.assertEqual((choice.finish_reason, choice.message.content, call.custom.name, call.custom.input), ("tool_calls", "Let me look.", "get_weather", '{"city": "Paris"}'))
        # The message goes back as the client has it.
        result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        self.assertEqual(self.client.chat.completions.create(model="any", messages=[QUESTION, choice.message, result], tools=tools).choices[0].message.content, "It is sunny.")

        def prompt(call):
            return self.server.request("POST", "/apply-template", {"messages": [QUESTION, {"role": "assistant", "content": None, "tool_calls": [call]}, {**result, "tool_call_id": "1"}], "tools": tools})

        text = 'a "b"\n'
        self.assertEqual(prompt({"id": "1", "type": "custom", "custom": {"name": "patch", "input": text}}),
                         prompt({"id": "1", "type": "function", "function": {"name": "patch", "arguments": json.dumps({"input": text}, separators=(",", ":"))}}))
        status, written = self.server.request("POST", "/apply-template", {"messages": [QUESTION], "tools": [self.custom(format={"type": "grammar", "grammar": {"syntax": "lark", "definition": 'start: "abc"'}})]})
        self.assertEqual((status, 'start: "abc"' in written["prompt"]), (200, True), written)

    def test_the_input_of_a_custom_tool_matches_its_grammar(self):
        text = '*** Begin "Patch"\n+a\\b'
        pattern = r'\*\*\* Begin "Patch"\n\+a\\b'
        lark = 'start: head change+\nhead: "*** Begin \\"Patch\\"\\n"\nchange: "+a\\\\b"'
        named = {"type": "custom", "custom": {"name": "patch"}}
        for syntax, definition in (("regex", pattern), ("lark", lark)):
            tools = [TOOL, self.custom(format={"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}})]
            for choice in (named, {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}):
                asked = {"tool_choice": choice, "parallel_tool_calls": False, "max_tokens": 400}
                answer = self.ask_custom([QUESTION], tools, **asked).choices[0]
                [call] = answer.message.tool_calls
                self.assertEqual((call.type, call.custom.name, answer.message.content), ("custom", "patch", None))
                if answer.finish_reason == "tool_calls":
                    self.assertRegex(call.custom.input, rf"\A{pattern}(\+a\\b)*\Z")
                    if syntax == "regex":
                        self.assertEqual(call.custom.input, text)
                else:
                    self.assertTrue(call.custom.input.startswith(text), call.custom.input)
                deltas = [delta for chunk in self.ask_custom([QUESTION], tools, stream=True, **asked) for one in chunk.choices for delta in one.delta.tool_calls or []]
                self.assertEqual((deltas[0].type, deltas[0].custom, [delta.id for delta in deltas[1:] if delta.id]), ("custom", {"name": "patch", "input": ""}, []))
                self.assertEqual({delta.index for delta in deltas}, {0})
                self.assertEqual("".join(delta.custom["input"] for delta in deltas), call.custom.input)
                self.assertGreater(len(deltas), 3)
                self.assertEqual({delta.function for delta in deltas}, {None})
        # Also where the model chooses. The script would call it with Paris.
        tools = [self.custom("get_weather", format={"type": "grammar", "grammar": {"syntax": "lark", "definition": 'start: "in " ("Rome" | "Oslo")'}})]
        for choice in ("auto", {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "custom", "custom": {"name": "get_weather"}}]}}):
            [call] = self.ask_custom([QUESTION], [self.custom(), *tools], tool_choice=choice).choices[0].message.tool_calls
            self.assertIn(call.custom.input, ("in Rome", "in Oslo"))

    def test_custom_tools_that_are_wrong(self):
        grammar = {"syntax": "lark", "definition": "start: x"}
        for tools, more, part in (([{"type": "custom"}], {}, "tools[0].custom"), ([{"type": "custom", "name": "patch"}], {}, "tools[0].name"), ([self.custom("")], {}, "tools[0].custom.name"),
                                  ([self.custom(parameters={})], {}, "tools[0].custom.parameters"), ([self.custom(format={"type": "pdf"})], {}, "tools[0].custom.format.type"),
                                  ([self.custom(format={"type": "text", "grammar": grammar})], {}, "tools[0].custom.format.grammar"),
                                  ([self.custom(format={"type": "grammar"})], {}, "tools[0].custom.format.grammar"),
                                  ([self.custom(format={"type": "grammar", "syntax": "lark"})], {}, "tools[0].custom.format.syntax"),
                                  ([self.custom(format={"type": "grammar", "grammar": {"syntax": "ebnf", "definition": "a"}})], {}, "tools[0].custom.format.grammar.syntax"),
                                  ([self.custom(format={"type": "grammar", "grammar": {"syntax": "regex"}})], {}, "tools[0].custom.format.grammar.definition"),
                                  ([self.custom("get_weather"), TOOL], {}, "get_weather"), ([self.custom()] * 2, {}, "patch"), ([{**TOOL, "custom": {}}], {}, "tools[0].custom"),
                                  ([self.custom()], {"tool_choice": {"type": "custom", "custom": {"name": "other"}}}, "other"),
                                  ([self.custom()], {"tool_choice": {"type": "custom", "function": {"name": "patch"}}}, "tool_choice.function"),
                                  ([self.custom()], {"tool_choice": {"type": "custom"}}, "tool_choice.custom"),
                                  ([self.custom(format={"type": "grammar", "grammar": grammar})], {"tool_choice": "required"}, "'x' is used and not defined")):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask_custom([QUESTION], tools, **more)
            self.assertIn(part, raised.exception.body["message"])
        for call, part in (({"id": "1", "type": "custom"}, "messages[1].tool_calls[0].custom"), ({"id": "1", "type": "custom", "custom": {"input": "a"}}, "messages[1].tool_calls[0].custom.name"),
                           ({"id": "1", "type": "custom", "custom": {"name": "patch", "input": {}}}, "messages[1].tool_calls[0].custom.input")):
            with self.assertRaises(openai.BadRequestError) as raised:
                self.ask_custom([QUESTION, {"role": "assistant", "tool_calls": [call]}], [self.custom()])
            self.assertIn(part, raised.exception.body["message"])

    def test_an_answer_that_is_cut_in_a_call(self):
        choice = self.ask([QUESTION], max_tokens=7).choices[0]
        self.assertEqual(choice.finish_reason, "length")


class DescribedByDefault(unittest.TestCase):
    """A file whose template is of DeepSeek V3's kind, which says nothing of tools."""

    TEMPLATE = ("{% set ns = namespace(system='', first=true) %}{% for m in messages %}{% if m['role'] == 'system' %}"
                "{% if ns.first %}{% set ns.system = m['content'] %}{% set ns.first = false %}{% else %}"
                "{% set ns.system = ns.system + '\\n\\n' + m['content'] %}{% endif %}{% endif %}{% endfor %}{{ bos_token }}{{ ns.system }}"
                "{% for m in messages %}{% if m['role'] == 'user' %}{{ '<｜User｜>' + m['content'] }}{% elif m['role'] == 'assistant' %}"
                "{{ '<｜Assistant｜>' + m['content'] + '<｜end▁of▁sentence｜>' }}{% endif %}{% endfor %}"
                "{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}{% endif %}")
    SCRIPT = [
        ["<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "function", "<｜tool▁sep｜>", "get_weather", "\n```json\n", '{"city": ', '"Par', 'is"}',
         "\n```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
        ["<｜tool▁outputs▁end｜>", "It is ", "sunny."]]

    def test_a_call_and_the_answer_to_its_result(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scripted.gguf")
            write_model(path, self.SCRIPT, template=self.TEMPLATE)
            with RunningServer("-m", path, "--temp", "0") as server:
                prompt = server.request("POST", "/apply-template", {"messages": [QUESTION], "tools": [TOOL]})[1]["prompt"]
                self.assertIn("# Tools", prompt)
                self.assertIn('"get_weather"', prompt)
                body = {"messages": [QUESTION], "tools": [TOOL]}
                status, answer = server.request("POST", "/v1/chat/completions", body)[:2]
                self.assertEqual(status, 200, answer)
                message = answer["choices"][0]["message"]
                [call] = message["tool_calls"]
                self.assertEqual((call["function"]["name"], json.loads(call["function"]["arguments"])), ("get_weather", {"city": "Paris"}))
                body["messages"] += [message, {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}]
                self.assertEqual(server.request("POST", "/v1/chat/completions", body)[1]["choices"][0]["message"]["content"], "It is sunny.")


class TemplateOfAFile(unittest.TestCase):
    """A template of nobody's, given by a flag: it is run, and how it writes calls is how they are read."""

    TEMPLATE = ("{% for t in tools %}{{ t | tojson }}{% endfor %}{% for m in messages %}{% if m.role == 'assistant' %}<|bot|>{{ m.content }}"
                "{% for c in m.tool_calls %}<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments.items() %}"
                "<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}"
                "{% else %}<|{{ m.role }}|>{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|bot|>{{ style }}{% endif %}")
    SCRIPT = [["<|bot|>", "Look.", "<tool_call>", "\n<function=", "get_weather", ">\n<parameter=city>\n", "77", "\n</parameter>\n</function>\n", "</tool_call>"]]

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path, template = os.path.join(cls.folder.name, "scripted.gguf"), os.path.join(cls.folder.name, "own.jinja")
        write_model(path, cls.SCRIPT)
        with open(template, "w", encoding="utf-8") as file:
            file.write(cls.TEMPLATE)
        cls.server = RunningServer("-m", path, "--chat-template-file", template, "--chat-template-kwargs", '{"style": ""}', "--temp", "0").__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def test_a_call(self):
        body = {"messages": [QUESTION], "tools": [TOOL]}
        status, answer = self.server.request("POST", "/v1/chat/completions", body)[:2]
        self.assertEqual(status, 200, answer)
        message = answer["choices"][0]["message"]
        self.assertEqual(message["content"], "Look.")
        [call] = message["tool_calls"]
        # A number that the schema calls a text.
        self.assertEqual((call["function"]["name"], json.loads(call["function"]["arguments"])), ("get_weather", {"city": "77"}))
        body["messages"] += [message, {"role": "tool", "tool_call_id": call["id"], "content": "sunny<|bot|>"}]
        prompt = self.server.request("POST", "/apply-template", body)[1]["prompt"]
        self.assertTrue(prompt.endswith("<|bot|>Look.<tool_call>\n<function=get_weather>\n<parameter=city>\n77\n</parameter>\n</function>\n</tool_call>"
                                        "<|tool|>sunny<|bot|><|bot|>"), prompt)

    def test_variables(self):
        def ask(variables):
            return self.server.request("POST", "/apply-template", {"messages": [QUESTION], "chat_template_kwargs": variables})[:2]
        self.assertEqual(ask({"style": "<|user|>"})[1]["prompt"], "<|user|>How is the weather in Paris?<|bot|><|user|>")
        for variables, part in (({"nobody": 1}, "nobody"), ({"messages": []}, "messages"), ({"thinking": 1}, "thinking"), ({"thinking": True}, "switch")):
            status, answer = ask(variables)
            self.assertEqual(status, 400)
            self.assertIn(part, answer["error"]["message"])


if __name__ == "__main__":
    running_server.main()
