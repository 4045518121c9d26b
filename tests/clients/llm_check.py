import json
import os
import subprocess
import tempfile

from checks import ANSWER, QUESTION, SUNNY, WEATHER, equal, feature, main

SCHEMA = {"type": "object", "properties": {"right": {"type": "boolean"}}, "required": ["right"], "additionalProperties": False}


def run(url, *arguments):
    """The command with a configuration folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "extra-openai-models.yaml"), "w") as file:
            file.write(f"- model_id: tessera\n  model_name: any\n  api_base: {url}/v1\n  supports_tools: true\n  supports_schema: true\n")
        done = subprocess.run(["llm", "-m", "tessera", *arguments], capture_output=True, text=True, env={**os.environ, "LLM_USER_PATH": folder})
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout.strip()


@feature("chat")
def chat(servers):
    equal(run(servers.bundled, "--no-stream", QUESTION), ANSWER)


@feature("stream")
def stream(servers):
    equal(run(servers.bundled, QUESTION), ANSWER)


@feature("tools")
def tools(servers):
    function = 'def get_weather(city: str) -> str:\n    "Weather of a city"\n    return "sunny"\n'
    for more in ((), ("--no-stream",)):
        text = run(servers.calls, "--functions", function, *more, WEATHER)
        if not text.endswith(SUNNY):
            raise AssertionError(text)


@feature("structured output")
def structured(servers):
    equal(type(json.loads(run(servers.bundled, "--no-stream", "--schema", json.dumps(SCHEMA), QUESTION))["right"]), bool)


main("llm")
