"""What a server owes whoever asks it after a device was lost."""

import json
import unittest

from running_server import CHAT, chat


class LostDevice(unittest.TestCase):
    device = None  # its name, in messages

    def lost(self, error):
        """The message of an error that says so."""
        self.assertEqual((error["error"]["code"], error["error"]["type"]), ("device_lost", "unavailable_error"), error)
        return error["error"]["message"]

    def events(self, answer):
        """Of a stream that had begun."""
        status, text = answer
        self.assertEqual(status, 200)
        return [json.loads(event.removeprefix("data: ")) for event in text.decode().strip().split("\n\n")]

    def check_afterwards(self, server, ask, failed):
        """ask(stream=...) asks for a completion; so many requests have failed so far."""
        status, error = server.request("GET", "/health")
        self.assertEqual(status, 503, error)
        self.assertIn("restart the server", self.lost(error))
        # Before a stream begins, so that clients and proxies see the status.
        for stream in (False, True):
            for status, error in (ask(stream=stream), server.request("POST", CHAT, chat(stream=stream))):
                self.assertEqual(status, 503, error)
                self.assertIn(self.device, self.lost(error))
        # What needs no device goes on.
        self.assertEqual(server.request("GET", "/v1/models")[0], 200)
        self.assertEqual(server.request("POST", "/tokenize", {"content": "x"})[0], 200)
        self.assertEqual(server.settled("requests_failed_total"), failed)
        status, slots = server.request("GET", "/slots")
        self.assertEqual((status, [slot for slot in slots if slot["is_processing"]]), (200, []))
        self.assertTrue(server.alive())
