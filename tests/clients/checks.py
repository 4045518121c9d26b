"""What a client is checked for: each feature is a function that raises where it does not work. main() runs them all and prints a row of a table."""

import importlib.metadata
import os
import sys
import traceback

for folder in ("server", "structure"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
import running_server
from running_server import RunningServer

QUESTION = "Count from 1 to 10 in French."
ANSWER = "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix"
# A model that has the tool get_weather calls it with Paris, and answers "It is sunny." to its result (tests/server/scripted_server.py).
WEATHER = "How is the weather in Paris?"
SUNNY = "It is sunny."

FEATURES = []


def feature(name):
    """Registers a function of one argument, the base URL of a server whose model can do it."""
    def register(check):
        FEATURES.append((name, check))
        return check
    return register


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r}")


class Servers:
    """Servers by what their model does, started when they are needed."""

    def __init__(self):
        self.running = {}

    def __getattr__(self, kind):
        flags = {"bundled": ("--temp", "0"),
                 "calls": ("-m", os.path.join(os.environ["TSR_MODELS"], "calls.gguf"), "--chat-template", "deepseek-v3.1", "--temp", "0"),
                 "edit": ("-m", os.path.join(os.environ["TSR_MODELS"], "edit.gguf"), "--chat-template", "deepseek-v3.1", "--temp", "0")}
        if kind == "schemas":
            import types_through  # it needs jsonschema, which only the clients that send types have
            flags[kind] = types_through.SERVER
        if kind not in flags:
            raise AttributeError(kind)
        if kind not in self.running:
            self.running[kind] = RunningServer("-t", "1", *flags[kind]).__enter__()
        return f"http://127.0.0.1:{self.running[kind].port}"

    def stop(self):
        for server in self.running.values():
            server.__exit__()


def main(package):
    """`package`: the distribution whose version the row has. A feature's function gets the servers."""
    running_server.PROGRAM = os.path.abspath(sys.argv[1])
    os.environ.setdefault("XDG_CACHE_HOME", running_server.PROGRAM + ".cache")
    # Clients ask for one, whether or not the server does.
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        os.environ[name] = "none"
    servers, row = Servers(), []
    try:
        for name, check in FEATURES:
            try:
                check(servers)
                row.append((name, "yes"))
            except Exception as error:
                traceback.print_exc()
                row.append((name, f"NO: {type(error).__name__}: {str(error)[:200]}"))
    finally:
        servers.stop()
    print(f"{os.environ['TSR_CLIENT_NAME']} {importlib.metadata.version(package)}: " + "; ".join(f"{name}: {state}" for name, state in row))
    sys.exit(any(state != "yes" for _, state in row))
