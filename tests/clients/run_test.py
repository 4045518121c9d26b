"""tests/clients/run without the network: its list, its errors, and that each client has pinned packages and a check that Python can read."""

import ast
import glob
import os
import subprocess
import sys
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(FOLDER, "run")


def run(*arguments, **environment):
    return subprocess.run([RUN, *arguments], capture_output=True, text=True, env={**os.environ, **environment})


class Run(unittest.TestCase):
    def test_each_client_has_packages_and_a_check(self):
        names = run("--list").stdout.split()
        self.assertGreater(len(names), 5)
        for name in names:
            with open(os.path.join(FOLDER, "packages", name + ".txt")) as file:
                for line in file:
                    self.assertRegex(line, r"^[a-z\[\],-]+==[0-9.]+$")
            with open(os.path.join(FOLDER, name.replace("-", "_") + "_check.py")) as file:
                ast.parse(file.read())
        checks = {os.path.basename(path).removesuffix("_check.py") for path in glob.glob(os.path.join(FOLDER, "*_check.py"))}
        self.assertEqual(checks, {name.replace("-", "_") for name in names})
        with open(os.path.join(FOLDER, "README.md")) as file:
            table = file.read()
        for name in names:
            self.assertIn(f"| {name} |", table)

    def test_errors(self):
        unknown = run("nobody")
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("no client 'nobody'; known are: ", unknown.stderr)
        self.assertIn("litellm", unknown.stderr)
        missing = run("litellm", "/no/such/folder")
        self.assertEqual(missing.returncode, 2)
        self.assertIn("/no/such/folder/tessera-server is not there", missing.stderr)
        self.assertIn("tests/clients/run NAME", run("--help").stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
