import os
import subprocess
import tempfile

from checks import equal, feature, main


def edited(url, *flags):
    """What the file has after aider was asked to edit it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "greeting.txt")
        with open(path, "w") as file:
            file.write("nothing\n")
        done = subprocess.run(["aider", "--model", "openai/any", "--openai-api-base", url + "/v1", "--openai-api-key", "none", "--no-git", "--yes-always",
                               "--no-show-model-warnings", "--no-check-update", "--no-show-release-notes", "--analytics-disable", "--no-pretty", "--edit-format", "whole",
                               *flags, "--message", "Greet the replica.", "greeting.txt"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, "HOME": folder})
        with open(path) as file:
            text = file.read()
        if done.returncode != 0 or text == "nothing\n":
            raise AssertionError(done.stdout[-500:] + done.stderr[-500:])
        return text


@feature("chat")
def chat(servers):
    equal(edited(servers.edit, "--no-stream"), "Hello, replica\n")


@feature("stream")
def stream(servers):
    equal(edited(servers.edit, "--stream"), "Hello, replica\n")


main("aider-chat")
