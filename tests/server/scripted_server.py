"""Tests with a server whose model says what a script has: it thinks, calls a tool, and answers to the tool's result."""

import os
import tempfile
import unittest

from running_server import RunningServer
from scripted_model import write_model

SCRIPT = [
    ["<think>", "Hm, ", "weather.", "</think>", "Let me ", "look.", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "get_weather", "<｜tool▁sep｜>",
     '{"city": ', '"Par', 'is"}', "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    ["<｜tool▁output▁begin｜>"],
    ["<｜tool▁output▁end｜>", "It is ", "sunny."],
]


class ScriptedServer(unittest.TestCase):
    """One `server` for all tests of a class, and a `client` of it, which `client_of` makes."""

    client_of = None

    @classmethod
    def setUpClass(cls):
        path = os.path.join(cls.enterClassContext(tempfile.TemporaryDirectory()), "scripted.gguf")
        write_model(path, SCRIPT)
        cls.server = cls.enterClassContext(RunningServer("-m", path, "--chat-template", "deepseek-v3.1", "--temp", "0"))
        cls.client = cls.enterClassContext(cls.client_of(cls.server))
