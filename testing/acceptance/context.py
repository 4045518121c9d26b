"""A context of each card, held for the whole run, so that no process has to wake the card; and whether the card still answers."""

import json
import selectors
import subprocess
import sys

from .process import Done, OWN_GROUP, end_group, guard

# Prints what it took as JSON, and holds the contexts until its input ends.
HOLDER = """
import ctypes, json, sys, time
begin = time.monotonic()
def check(call, status):
    if status:
        sys.exit(f"{call} returned {status}")
cuda = ctypes.CDLL("libcuda.so.1")
check("cuInit", cuda.cuInit(0))
found = {"init": time.monotonic() - begin, "contexts": []}
count, device, context, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
if not cuda.cuDriverGetVersion(ctypes.byref(version)):
    found["driver"] = version.value
check("cuDeviceGetCount", cuda.cuDeviceGetCount(ctypes.byref(count)))
for ordinal in range(count.value):
    begin = time.monotonic()
    check("cuDeviceGet", cuda.cuDeviceGet(ctypes.byref(device), ordinal))
    check("cuDevicePrimaryCtxRetain", cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    found["contexts"].append(time.monotonic() - begin)
print(json.dumps(found), flush=True)
if sys.argv[1:] == ["hold"]:
    sys.stdin.read()
"""
SECONDS = 60  # that a card may take to wake


class Contexts:
    """`found`: seconds of cuInit ("init") and of each card's context ("contexts"), and the driver's version of CUDA; or {} and `why`."""

    def __init__(self, environment):
        self.found, self.why = {}, ""
        self.process = subprocess.Popen([sys.executable, "-c", HOLDER, "hold"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, **OWN_GROUP)
        guard.tell("+", self.process.pid)
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if selector.select(SECONDS) else b""
        try:
            self.found = json.loads(line)
        except ValueError:
            self.why = line.decode(errors="replace").strip() or f"no answer within {SECONDS} s"

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass
        end_group(self.process.pid)
        guard.tell("-", self.process.pid)


def why_gone(environment):
    """Empty if a new process can open every card; asked after one has lost its own."""
    done = Done([sys.executable, "-c", HOLDER], environment, SECONDS)
    return "" if done.status == 0 else f"the cards do not answer any more: {done.all.strip()[-200:]}"
