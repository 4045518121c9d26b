"""On the machine that builds: everything that is carried to the one with a card."""

import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

from .process import Done, die

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ["tessera", "measure_card", "measure_steps"]
# compute-sanitizer, from PyPI: the machine with a card has the driver alone.
SANITIZER = "nvidia-cuda-sanitizer-api-cu12==12.9.79"


def libraries_of(program):
    """Shared libraries that a program needs, but for those of the C library, which every machine has."""
    keep = re.compile(r"/(ld-linux|libc|libm|libdl|libpthread|librt|libresolv)[-.]")
    done = Done(["ldd", program])
    if done.status != 0 or "not found" in done.out:
        die(f"ldd {program}: {done.all}")
    return [pathlib.Path(p) for p in re.findall(r"=> (/\S+)", done.out) if not keep.search(p)]


def newest_trial(binary):
    """The newest architecture of which cuda_legacy has code that was made from an older virtual one (90 of 90@61), as a compute capability."""
    cache = (binary / "CMakeCache.txt").read_text()
    found = re.search(r"(?m)^TSR_CUDA_ARCHS:\w+=(.*)$", cache)
    trials = [int(arch.split("@")[0]) for arch in (found.group(1).split(";") if found else []) if "@" in arch and int(arch.split("@")[1]) < 80]
    return f"{max(trials) // 10}.{max(trials) % 10}" if trials else None


def serve_up_to(manifest, capability):
    """Which cards a library serves stands in its manifest, and cuda_legacy's ends at Turing."""
    text, count = re.subn(r"(?m)^maximum_compute_capability = .*$", f'maximum_compute_capability = "{capability}"', manifest.read_text())
    if count != 1:
        die(f"{manifest}: expected one line maximum_compute_capability, found {count}")
    manifest.write_text(text)


def gather(binary, folder):
    """What was built in `binary`, with what it needs, in a new folder."""
    if folder.exists():
        die(f"{folder} is there already: remove it, or name another")
    wrappers = sorted(p.name for p in (binary / "bin").glob("cuda_wrappers_*_test"))
    absent = [name for name in PROGRAMS if not (binary / "bin" / name).exists()] + ([] if wrappers else ["cuda_wrappers_*_test"])
    if absent:
        die(f"there is no {', '.join(absent)} in {binary / 'bin'}: build the target tessera_gpu_acceptance")
    for part in ("bin", "lib/tessera/plugins", "lib/carried", "share"):
        (folder / part).mkdir(parents=True)
    programs = PROGRAMS + wrappers
    for name in programs:
        shutil.copy2(binary / "bin" / name, folder / "bin" / name)
    for file in (binary / "lib/tessera/plugins").iterdir():
        shutil.copy2(file, folder / "lib/tessera/plugins" / file.name)
    legacy, newest = folder / "lib/tessera/plugins/tessera_cuda_legacy.toml", newest_trial(binary)
    if legacy.exists() and newest:
        serve_up_to(legacy, newest)
    shutil.copytree(binary / "share", folder / "share", dirs_exist_ok=True)
    for program in [folder / "bin" / name for name in programs] + list((folder / "lib/tessera/plugins").glob("*.so")):
        for library in libraries_of(program):
            if not (folder / "lib/carried" / library.name).exists():
                shutil.copy2(library, folder / "lib/carried" / library.name)
    for model in (SOURCE / "models").glob("demo-*.gguf"):
        shutil.copy2(model, folder / "share" / model.name)
    shutil.copy2(SOURCE / "tools/gpu_acceptance", folder / "gpu_acceptance")
    shutil.copytree(SOURCE / "tools/acceptance", folder / "acceptance", ignore=shutil.ignore_patterns("__pycache__"))


def unpack_sanitizer(wheel, folder):
    """The program looks for its libraries beside itself."""
    folder.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if re.search(r"/(bin|lib)/[^/]+$|/licenses/[^/]+$", name):
                (folder / pathlib.PurePosixPath(name).name).write_bytes(archive.read(name))
    program = folder / "compute-sanitizer"
    if not program.exists():
        die(f"{wheel}: there is no compute-sanitizer in it")
    program.chmod(0o755)


def carry_sanitizer(binary, folder):
    """Without network it is not carried, and the report says that it was left out."""
    wheels = binary / "wheels"
    python = SOURCE / ".venv/bin/python"
    done = Done([python if python.exists() else sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary",
                 ":all:", "--dest", wheels, SANITIZER], timeout=120)
    found = sorted(wheels.glob("*sanitizer*.whl"))
    if done.status != 0 or not found:
        print(f"note: compute-sanitizer is not carried: pip could not download {SANITIZER}: {done.all.strip()}", file=sys.stderr)
        return
    unpack_sanitizer(found[-1], folder / "compute-sanitizer")


def finish(binary, folder, sanitizer):
    gather(binary, folder)
    if sanitizer:
        carry_sanitizer(binary, folder)
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    print(f"{folder}: {size / 1e6:.0f} MB; carry it, and run  python3 {folder.name}/gpu_acceptance run {folder.name}")
    return 0


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
    return finish(binary, options.folder, not options.emulated)
