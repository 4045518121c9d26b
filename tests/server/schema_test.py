"""Requests made from openapi.yaml, valid and not: what is answered is what the document says, and never a 500."""

import pathlib
import sys
import unittest

import hypothesis
import schemathesis
import yaml

import running_server
from running_server import RunningServer

DOCUMENT = pathlib.Path(__file__).parents[2] / "apps" / "server" / "openapi.yaml"
EXAMPLES = int(sys.argv.pop(2)) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 15  # of each operation and kind


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = RunningServer("--parallel", "4", "--embeddings").__enter__()
        cls.schema = schemathesis.openapi.from_dict(yaml.safe_load(DOCUMENT.read_text()))

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def check(self, mode):
        settings = hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
                                       suppress_health_check=list(hypothesis.HealthCheck))
        operations = 0
        for found in self.schema.get_all_operations():
            operation = found.ok()
            operations += 1
            # Nothing can be wrong in a request without parameters and body.
            if mode == schemathesis.GenerationMode.NEGATIVE and not operation.body:
                continue

            @settings
            @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
            def test(case):
                # Answers stay short, however many are asked for.
                if isinstance(case.body, dict) and isinstance(case.body.get("max_tokens"), int):
                    case.body["max_tokens"] = min(case.body["max_tokens"], 2)
                response = case.call(base_url=f"http://127.0.0.1:{self.server.port}", timeout=120)
                self.assertNotIn(response.status_code, (500, 502, 504), response.text[:500])
                case.validate_response(response, checks=[
                    schemathesis.specs.openapi.checks.status_code_conformance,
                    schemathesis.specs.openapi.checks.content_type_conformance,
                    schemathesis.specs.openapi.checks.response_schema_conformance])

            with self.subTest(f"{operation.method} {operation.path}"):
                test()
        self.assertGreater(operations, 10)
        self.assertTrue(self.server.alive())

    def test_requests_that_are_valid(self):
        self.check(schemathesis.GenerationMode.POSITIVE)

    def test_requests_that_are_not(self):
        self.check(schemathesis.GenerationMode.NEGATIVE)


if __name__ == "__main__":
    running_server.main()
