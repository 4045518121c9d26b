"""Python's Jinja as transformers sets it up, and render_chat, for the tests that compare the two."""
import json
import re
import subprocess
import sys

try:
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment
except ImportError:
    print("skipped: this Python lacks jinja2")
    sys.exit(77)


class Generation(Extension):
    """{% generation %}: what is trained on; it writes its body."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_write"), [], [], body).set_lineno(line)

    def _write(self, caller):
        return caller()


def environment(immutable=True):
    kind = ImmutableSandboxedEnvironment if immutable else SandboxedEnvironment
    one = kind(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])

    def raise_exception(message):
        raise ValueError(message)

    def strftime_now(form):
        from datetime import datetime
        return datetime.now().strftime(form)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    one.globals["raise_exception"] = raise_exception
    one.globals["strftime_now"] = strftime_now
    one.filters["tojson"] = tojson
    return one


ADDRESS = re.compile(r" at 0x[0-9a-f]+>")


def rendered(compiled, variables):
    """The text, or None where Python refuses, or writes where an object lies in its memory."""
    try:
        text = compiled.render(json.loads(json.dumps(variables)))
    except Exception:  # whatever a template makes of Python
        return None
    return None if ADDRESS.search(text) else text


class Renderer:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"render_chat ended at {json.dumps(request)[:2000]}")
        return json.loads(line)
