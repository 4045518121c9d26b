"""install_test.py BUILD: `cmake --install` of a whole build, moved, run as the user nobody from a read-only tree.

Needs root for the other user; without it the test is skipped (exit code 77)."""
import os
import pathlib
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
sys.argv[1:] = []
PROMPT = ["run", "-p", "Count from 1 to 5 in French.", "-n", "24", "--temp", "0", "-t", "1"]


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def as_nobody(command, home):
    user = pwd.getpwnam("nobody")
    return run(command, user=user.pw_uid, group=user.pw_gid, extra_groups=[], cwd="/", umask=0o077,
               env={"PATH": "/usr/bin:/bin", "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")})


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        os.chmod(cls.folder, 0o755)
        cls.first, cls.moved = cls.folder / "first", cls.folder / "moved"
        # A umask that would let the group write, which plugins are refused for, must not matter.
        cls.said = run(["cmake", "--install", BUILD, "--prefix", cls.first], umask=0o002).stdout
        cls.first.rename(cls.moved)
        for path in [cls.moved, *cls.moved.rglob("*")]:
            if not path.is_symlink():
                os.chmod(path, stat.S_IMODE(path.stat().st_mode) & ~0o222)

    @classmethod
    def tearDownClass(cls):
        for path in [cls.moved, *cls.moved.rglob("*")]:
            if path.is_dir() and not path.is_symlink():
                os.chmod(path, 0o755)
        shutil.rmtree(cls.moved)
        super().tearDownClass()

    def test_every_plugin_has_its_own_manifest(self):
        installed = self.moved / "lib/tessera/plugins"
        if not installed.is_dir():
            installed = next(self.moved.glob("lib*/**/tessera/plugins"))
        names = sorted(path.name for path in installed.glob("*.so"))
        self.assertGreaterEqual(len(names), 3, self.said)
        built = next(BUILD.glob("lib*/**/tessera/plugins"), BUILD / "lib/tessera/plugins")
        # The build folder may hold others, of an earlier configuration.
        self.assertLessEqual(set(names), {path.name for path in built.glob("*.so")})
        self.assertLessEqual({"tessera_mla.so", "tessera_reference.so"}, set(names), self.said)
        for name in names:
            manifest = (installed / name).with_suffix(".toml")
            ours, theirs = (tomllib.loads(path.read_text()) for path in (manifest, (built / name).with_suffix(".toml")))
            ours.pop("sha256"), theirs.pop("sha256")  # of another file: its paths to libraries are others
            self.assertEqual(ours, theirs, name)

    def test_no_file_can_be_written_by_others(self):
        for path in self.moved.rglob("*"):
            self.assertFalse(path.lstat().st_mode & 0o022 and not path.is_symlink(), path)

    def test_nobody_gets_the_answer_of_the_build(self):
        wanted = run([BUILD / "bin/tessera", *PROMPT], env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "own")}).stdout
        self.assertIn("un", wanted)
        for home in (self.folder / "nothing", pathlib.Path("/")):  # no home, and one that cannot be written to
            done = as_nobody([self.moved / "bin/tessera", *PROMPT], home)
            self.assertEqual(done.stdout, wanted)
            self.assertNotIn("not used", done.stderr)
        listed = as_nobody([self.moved / "bin/tessera", "plugins", "--why"], self.folder / "nothing").stdout
        self.assertNotIn("manifest", listed)

    def test_the_server_is_there_under_its_name(self):
        self.assertIn("tessera", as_nobody([self.moved / "bin/tessera-server", "--version"], self.folder / "nothing").stdout)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: another user's programs can be started only by root")
        sys.exit(77)
    unittest.main()
