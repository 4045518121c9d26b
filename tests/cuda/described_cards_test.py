#!/usr/bin/env python3
"""described_cards_test.py TOOL BUILD: links of emulated cards to the host, and memory that other processes have, reach devices and plans; a matrix
with two uses is there once."""
import json
import os
import subprocess
import sys

tool, build = sys.argv[1:]
failed = False


def check(right, what):
    global failed
    if not right:
        print(what)
        failed = True


def tessera(cards, *words):
    gpus = [word for card in cards for word in ("--gpu", card)]
    done = subprocess.run([tool, "--build", build, *gpus, "--", build + "/bin/tessera", *words], capture_output=True, text=True)
    check(done.returncode == 0, f"{cards} {words}: {done.stderr}")
    return done.stdout


def plan(cards, device, *words):
    """Of the bundled model, its layers on one of the cards."""
    made = json.loads(tessera(cards, "plan", "--json", "-dev", device, "-ngl", "99", *words) or "{}")
    return made, next((one for one in made.get("devices", []) if one["id"] == device), {})


unequal = ["8.6:24GiB:link=pcie4x16", "8.6:24GiB:link=pcie3x1"]
devices = " ".join(tessera(unequal, "devices").split())
for text in ("pcie4x16, EE00:01:00.0", "pcie3x1, EE00:02:00.0"):
    check(text in devices, f'devices: expected "{text}" in: {devices}')
few = " ".join(tessera(["8.6:2GiB:taken=512MiB:context=256:name=small"], "devices").split())
check("owned by: cuda_ampere memory: 1280.0 MiB free of 2048.0 MiB, as the driver counts" in few, f"devices: expected memory as the driver counts in: {few}")
# Activations cross the link to experts on the CPU and back. By sysfs alone both links would be taken for the same.
# Without weights that are streamed, since the time of those has the speed of this machine's memory in it: nothing that is measured enters.
copies = [plan(unequal, device, "--cpu-moe", "--no-op-offload")[0].get("speed", [{"prompt_step": {"copies": 0}}])[0]["prompt_step"]["copies"]
          for device in ("CUDA0", "CUDA1")]
check(0 < 10 * copies[0] < copies[1], f"experts on the CPU: expected longer copies of a prompt over pcie3x1 than over pcie4x16, found {copies[1]} s and {copies[0]} s")

free = plan(["8.6:24GiB"], "CUDA0")[1].get("usable_bytes", 0)
left = plan(["8.6:24GiB:taken=8GiB"], "CUDA0")[1].get("usable_bytes", 0)
taken = (8 << 30) - (8 << 30) // 64  # less their part of the margin
check(0 < left == free - taken, f"8 of 24 GiB are taken: expected {free - taken} bytes, found {left}")
# A matrix that is both embedding and output: both nodes read it in one layout, which is one copy on the card.
golden = os.path.join(build, "goldens", "llama-gqa.gguf")
for card in ("8.6:24GiB", "6.1:24GiB"):
    uses = [(node["device"], operand["layout"]) for node in plan([card], "CUDA0", golden)[0].get("nodes", []) for operand in node["inputs"]
            if operand.get("storage") == "token_embd.weight"]
    check(len(uses) == 2 and set(uses) == {("CUDA0", uses[0][1])}, f"{card}: expected one copy for embedding and output, found {uses}")
sys.exit(failed)
