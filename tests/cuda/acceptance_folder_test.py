"""tools/gpu_acceptance packs what a machine with a card needs beside the tree, and the two can be carried: acceptance_folder_test.py SOURCE BUILD
FOLDER. FOLDER, which is TMPDIR, is made anew, and stays."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import unittest

SOURCE, BUILD, MADE = map(pathlib.Path, sys.argv[1:4])
FILE = MADE / "gpu.tar.xz"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "testing"))

from acceptance import build, profile  # noqa: E402

# That of a build for more cards than are carried for, little compressed, and with the tree.
MOST, MOST_WITH_TREE = 44, 96
# Of the C library: those are the machine's own.
SYSTEM = re.compile(r"(ld-linux|libc|libm|libdl|libpthread|librt|libresolv)[-.]")


def manifests(folder):
    return {path.name: tomllib.loads(path.read_text()) for path in (folder / "lib/tessera/plugins").glob("*.toml")}


class Gathered(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        global FOLDER
        shutil.rmtree(MADE, ignore_errors=True)
        MADE.mkdir()
        cls.packed = subprocess.run([sys.executable, SOURCE / "tools/gpu_acceptance", "pack", BUILD, FILE, "--most", str(MOST), "--most-carried", str(MOST_WITH_TREE), "--preset", "0"],
                                    check=True, capture_output=True, text=True).stdout
        FOLDER = build.unpack(FILE)
        assert FOLDER.parent == MADE, FOLDER

    def test_it_can_be_carried_with_the_tree(self):
        # With a file as large as the command lets one for a card be.
        self.assertLessEqual(build.MOST + build.tree_bytes(), build.MOST_CARRIED)
        self.assertIn(f"of {MOST_WITH_TREE} MiB", self.packed)

    def test_the_command_to_type_is_said(self):
        self.assertIn(f"python3 tools/gpu_acceptance run {FILE.relative_to(SOURCE) if FILE.is_relative_to(SOURCE) else FILE} --minutes 4", self.packed)

    def test_programs_run_from_it(self):
        for name in ("bin/tessera", "bin/measure_card", "bin/measure_steps"):
            self.assertTrue(os.access(FOLDER / name, os.X_OK), name)
        self.assertTrue(list((FOLDER / "bin").glob("cuda_wrappers_*_test")))
        self.assertEqual(list(FOLDER.rglob("*.gguf")), [])  # the tree's own are used
        done = subprocess.run([FOLDER / "bin/tessera", "plugins", "--why"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("the manifest says", done.stdout)

    def test_plugins_and_their_manifests(self):
        built, gathered = manifests(BUILD), manifests(FOLDER)
        self.assertEqual(set(built), set(gathered))
        self.assertIn("tessera_reference.toml", gathered)
        self.assertTrue({"tessera_cuda_ampere.toml", "tessera_cuda_legacy.toml"} & set(gathered))
        for name, manifest in gathered.items():
            self.assertTrue((FOLDER / "lib/tessera/plugins" / name.replace(".toml", ".so")).exists(), name)
            if name != "tessera_cuda_legacy.toml":
                self.assertEqual(manifest, built[name])
        # cuda_legacy serves newer cards where it was built to be tried on them, and only there.
        archs = re.search(r"(?m)^TSR_CUDA_ARCHS:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text()).group(1)
        tried = [int(sm) for sm, virtual in re.findall(r"(\d+)@(\d+)", archs) if int(virtual) < 80]
        legacy = gathered.get("tessera_cuda_legacy.toml")
        if legacy:
            most = f"{max(tried) // 10}.{max(tried) % 10}" if tried else "7.5"
            self.assertIn(f"'maximum_compute_capability': '{most}'", str(legacy))

    def test_kernels_that_are_profiled_are_there_and_are_started_by_what_is_measured(self):
        cards = {"cuda_ampere": "8.6:24GiB", "cuda_legacy": "6.1:24GiB"}
        for name, kernels in profile.KERNELS.items():
            made = {line.split()[2] for path in (BUILD / "plugins" / name).rglob("*.statistics") for line in path.read_text().splitlines()}
            for pattern, topic, what in kernels:
                with self.subTest(plugin=name, kernel=pattern):
                    self.assertTrue([kernel for kernel in made if re.fullmatch(pattern, kernel)], sorted(made)[:5])
                    words = [SOURCE / "tools/with_emulated_gpus", "--build", BUILD, "--gpu", cards[name], "--", FOLDER / "bin/measure_card",
                             FOLDER / f"lib/tessera/plugins/tessera_{name}.so", "--topics", topic, "--what", what, "--plan"]
                    done = subprocess.run(words, capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stdout.count('"estimated"')), (0, 1), done.stdout + done.stderr)

    def test_libraries_come_from_it(self):
        environment = dict(os.environ, LD_LIBRARY_PATH=str(FOLDER / "lib/carried"))
        for path in [*(FOLDER / "bin").iterdir(), *(FOLDER / "lib/tessera/plugins").glob("*.so")]:
            text = subprocess.run(["ldd", path], capture_output=True, text=True, env=environment, check=True).stdout
            self.assertNotIn("not found", text, path)
            for name, found in re.findall(r"(\S+) => (/\S+)", text):
                if not SYSTEM.match(name):
                    self.assertEqual(pathlib.Path(found).parent, (FOLDER / "lib/carried").resolve(), f"{path.name}: {name}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
