"""tools/gpu_acceptance gathers what a machine with a card needs: acceptance_folder_test.py SOURCE BUILD FOLDER. FOLDER is made anew, and stays."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import unittest

SOURCE, BUILD, FOLDER = map(pathlib.Path, sys.argv[1:4])
# Of the C library: those are the machine's own.
SYSTEM = re.compile(r"(ld-linux|libc|libm|libdl|libpthread|librt|libresolv)[-.]")


def manifests(folder):
    return {path.name: tomllib.loads(path.read_text()) for path in (folder / "lib/tessera/plugins").glob("*.toml")}


class Gathered(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(FOLDER, ignore_errors=True)
        subprocess.run([sys.executable, SOURCE / "tools/gpu_acceptance", "gather", BUILD, FOLDER], check=True)

    def test_programs_run_from_it(self):
        for name in ("bin/tessera", "bin/measure_card", "bin/measure_steps", "gpu_acceptance"):
            self.assertTrue(os.access(FOLDER / name, os.X_OK), name)
        self.assertTrue(list((FOLDER / "bin").glob("cuda_wrappers_*_test")))
        self.assertTrue(list((FOLDER / "share").glob("demo-*.gguf")))
        self.assertTrue((FOLDER / "acceptance/report.py").exists())
        done = subprocess.run([FOLDER / "bin/tessera", "plugins"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

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
