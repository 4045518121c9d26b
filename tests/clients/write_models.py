"""Writes the models that the checks of clients run with into a folder: models whose answers are a script, whatever the prompt."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from scripted_model import write_model
from scripted_server import SCRIPT

CONTEXT = 65536  # agents begin with long prompts, of which each byte is a token here
# As aider takes a whole file: its name, and what it is to hold.
WHOLE_FILE = [["</think>", "Done.\n\n", "greeting.txt\n", "```\n", "Hello, ", "replica\n", "```"]]

if __name__ == "__main__":
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    write_model(os.path.join(folder, "calls.gguf"), SCRIPT, context=CONTEXT)
    write_model(os.path.join(folder, "edit.gguf"), WHOLE_FILE, context=CONTEXT)
