"""On the machine that builds: everything that is carried to the one with a card."""

import re
import shutil
import subprocess

from .process import Done, die
import pathlib

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ["tessera", "measure_card", "measure_steps"]


def libraries_of(program):
    """Shared libraries that a program needs, but for those of the C library, which every machine has."""
    keep = re.compile(r"/(ld-linux|libc|libm|libdl|libpthread|librt|libresolv)[-.]")
    done = Done(["ldd", program])
    if done.status != 0:
        die(f"ldd {program}: {done.all}")
    return [pathlib.Path(p) for p in re.findall(r"=> (/\S+)", done.out) if not keep.search(p)]


def gather(binary, folder):
    """What was built in `binary`, with what it needs, in a new folder."""
    if folder.exists():
        die(f"{folder} is there already: remove it, or name another")
    for part in ("bin", "lib/tessera/plugins", "lib/carried", "share"):
        (folder / part).mkdir(parents=True)
    programs = PROGRAMS + [p.name for p in (binary / "bin").glob("cuda_wrappers_*_test")]
    for name in programs:
        shutil.copy2(binary / "bin" / name, folder / "bin" / name)
    for file in (binary / "lib/tessera/plugins").iterdir():
        shutil.copy2(file, folder / "lib/tessera/plugins" / file.name)
    # What was made from compute_61 for a newer card is to run there. A library's manifest says which cards it serves.
    legacy = folder / "lib/tessera/plugins/tessera_cuda_legacy.toml"
    if legacy.exists():
        legacy.write_text(re.sub(r"(?m)^maximum_compute_capability = .*$", 'maximum_compute_capability = "99.9"', legacy.read_text()))
    shutil.copytree(binary / "share", folder / "share", dirs_exist_ok=True)
    for program in [folder / "bin" / name for name in programs] + list((folder / "lib/tessera/plugins").glob("*.so")):
        for library in libraries_of(program):
            if not (folder / "lib/carried" / library.name).exists():
                shutil.copy2(library, folder / "lib/carried" / library.name)
    for model in (SOURCE / "models").glob("demo-*.gguf"):
        shutil.copy2(model, folder / "share" / model.name)
    shutil.copy2(SOURCE / "tools/gpu_acceptance", folder / "gpu_acceptance")
    shutil.copytree(SOURCE / "tools/acceptance", folder / "acceptance", ignore=shutil.ignore_patterns("__pycache__"))


def build(options):
    binary = SOURCE / "build" / "gpu-acceptance"
    archs = ";".join(options.archs.split())
    for words in (["cmake", "--preset", "release", "-B", binary, "-DTSR_CUDA=ON", f"-DTSR_CUDA_ARCHS={archs}",
                   f"-DTSR_CUDA_EMULATOR={'ON' if options.emulated else 'OFF'}"],
                  ["cmake", "--build", binary, "--target", "tessera_gpu_acceptance"]
                  + (["tessera_emulated_cuda", "tessera_emulated_nvml"] if options.emulated else [])):
        print(" ".join(map(str, words)), flush=True)
        if subprocess.run([str(w) for w in words], cwd=SOURCE).returncode != 0:
            die("the build failed")
    gather(binary, options.folder)
    folder = options.folder
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    print(f"{folder}: {size / 1e6:.0f} MB; carry it, and run  python3 {folder.name}/gpu_acceptance run {folder.name}")
    return 0
