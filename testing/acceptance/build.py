"""On the machine that builds: one file with what is built, which is carried beside the tree to the machine with a card."""

import hashlib
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

from .process import Done, die

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PACKED = SOURCE / "build" / "gpu.tar.xz"
PROGRAMS = ["tessera", "measure_card", "measure_steps", "expand_goldens"]
MIB = 1 << 20
BUILT = "build.json"  # for which architectures, and from which commit
# Bytes of the file, and of the file and the tree together: what can be sent to a machine that is lent for minutes.
MOST, MOST_CARRIED = 33 * MIB, 60 * MIB


def libraries_of(program):
    """Shared libraries that a program needs, but for those of the C library, which every machine has."""
    keep = re.compile(r"/(ld-linux|libc|libm|libdl|libpthread|librt|libresolv)[-.]")
    done = Done(["ldd", program])
    if done.status != 0 or "not found" in done.out:
        die(f"ldd {program}: {done.all}")
    return [pathlib.Path(p) for p in re.findall(r"=> (/\S+)", done.out) if not keep.search(p)]


def archs_of(binary):
    found = re.search(r"(?m)^TSR_CUDA_ARCHS:\w+=(.*)$", (binary / "CMakeCache.txt").read_text())
    return found.group(1).split(";") if found else []


def newest_trial(binary):
    """The newest architecture of which cuda_legacy has code that was made from an older virtual one (90 of 90@61), as a compute capability."""
    trials = [int(arch.split("@")[0]) for arch in archs_of(binary) if "@" in arch and int(arch.split("@")[1]) < 80]
    return f"{max(trials) // 10}.{max(trials) % 10}" if trials else None


def serve_up_to(manifest, capability):
    """Which cards a library serves stands in its manifest, and cuda_legacy's ends at Turing."""
    text, count = re.subn(r"(?m)^maximum_compute_capability = .*$", f'maximum_compute_capability = "{capability}"', manifest.read_text())
    if count != 1:
        die(f"{manifest}: expected one line maximum_compute_capability, found {count}")
    manifest.write_text(text)


def gather(binary, folder):
    """What was built in `binary`, with the libraries that it needs, in a new folder. Models and scripts are the tree's."""
    wrappers = sorted(p.name for p in (binary / "bin").glob("cuda_wrappers_*_test"))
    absent = [name for name in PROGRAMS if not (binary / "bin" / name).exists()] + ([] if wrappers else ["cuda_wrappers_*_test"])
    if absent:
        die(f"there is no {', '.join(absent)} in {binary / 'bin'}: build the target tessera_gpu_acceptance")
    for part in ("bin", "lib/tessera/plugins", "lib/carried"):
        (folder / part).mkdir(parents=True)
    made = [binary / "bin" / name for name in PROGRAMS + wrappers]
    made += (binary / "lib/tessera/plugins").iterdir()
    for file in made:
        shutil.copy2(file, folder / file.relative_to(binary))
    legacy, newest = folder / "lib/tessera/plugins/tessera_cuda_legacy.toml", newest_trial(binary)
    if legacy.exists() and newest:
        serve_up_to(legacy, newest)
    carried = {library.name: library for file in made if file.suffix != ".toml" for library in libraries_of(file)}
    for name, library in carried.items():
        shutil.copy2(library, folder / "lib/carried" / name)
    strip = shutil.which("strip")
    for file in [*(folder / "bin").iterdir(), *(folder / "lib/carried").iterdir()] if strip else ():  # manifests have the hashes of plugins
        subprocess.run([strip, "--strip-unneeded", file], check=True)
    (folder / BUILT).write_text(json.dumps({"archs": archs_of(binary), "commit": commit()}))


def built(folder):
    """What stands in BUILT, of a folder that was unpacked or of a build."""
    if (folder / BUILT).exists():
        return json.loads((folder / BUILT).read_text())
    return {"archs": archs_of(folder), "commit": commit()}


def journal_of(folder):
    """Where the journal of runs on this machine is kept for the next one."""
    return pathlib.Path(tempfile.gettempdir()) / f"tessera-gpu-{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}-{os.getuid()}.jsonl"


def commit():
    done = Done(["git", "-C", SOURCE, "describe", "--always", "--dirty"])
    return done.out.strip() if done.status == 0 else "unknown"


def tree_bytes():
    """Of the files that travel with the tree: tracked, and new ones that git does not ignore; 0 where there is no git."""
    done = Done(["git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    paths = [SOURCE / name for name in done.out.split("\0") if name] if done.status == 0 else []
    return sum(path.lstat().st_size for path in paths if path.is_symlink() or path.is_file())


def compress(folder, file, preset):
    """A tar of what is in the folder, the same for the same contents."""
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": preset}]

    def plain(member):
        member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
        return member

    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(file.name + ".unfinished")
    with lzma.open(unfinished, "wb", filters=filters) as output, tarfile.open(fileobj=output, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, path.relative_to(folder), recursive=False, filter=plain)
    os.replace(unfinished, file)


def check_size(file, size, tree, most, carried=MOST_CARRIED):
    """Ends the program if the file cannot be carried."""
    if size > most:
        die(f"{file}: {size / MIB:.1f} MiB; expected at most {most / MIB:g} MiB. Build for fewer architectures (--archs)")
    if tree + size > carried:
        die(f"{file}: {size / MIB:.1f} MiB, with the tree of {tree / MIB:.1f} MiB more than {carried / MIB:g} MiB: make the tree smaller")


def pack(binary, file, most=MOST / MIB, preset=6, carried=MOST_CARRIED / MIB):
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpu-pack-") as work:
        gather(binary, pathlib.Path(work) / "gpu")
        compress(pathlib.Path(work) / "gpu", file, preset)
    size, tree = file.stat().st_size, tree_bytes()
    check_size(file, size, tree, most * MIB, carried * MIB)
    shown = file.relative_to(SOURCE) if file.is_relative_to(SOURCE) else file
    run = f"python3 tools/gpu_acceptance run {shown} --minutes 4 --output gpu.md"
    print(f"{shown}: {size / MIB:.1f} MiB for {' '.join(archs_of(binary))}, packed in {time.monotonic() - begin:.0f} s; with the tree, which is carried too, "
          f"{(size + tree) / MIB:.1f} of {carried:g} MiB.\nOn the machine with a card, in the tree:\n\n    {run}\n\nand for what that has no time for, "
          f"there again:\n\n    {run} --continue\n")
    return 0


def unpack(file):
    """The folder with what is in the file, beside those of other files; what is unpacked already stays, with the journal of runs."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    folder = pathlib.Path(tempfile.gettempdir()) / f"tessera-gpu-{digest}-{os.getuid()}"
    if folder.exists():
        if folder.lstat().st_uid != os.getuid():
            die(f"{folder} belongs to another user: remove it, or set TMPDIR")
        return folder
    unfinished = pathlib.Path(tempfile.mkdtemp(prefix="tessera-gpu-"))
    try:
        with tarfile.open(file, "r:xz") as archive:
            archive.extractall(unfinished, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        os.rename(unfinished, folder)
    except (OSError, tarfile.TarError, lzma.LZMAError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        die(f"{file}: {error}")
    return folder


def build(options):
    binary = SOURCE / "build" / "gpu-acceptance"
    archs = ";".join(options.archs.split())
    # As tools/build does: compiled once, found again from any other clone of the same sources.
    environment = dict(os.environ, CCACHE_BASEDIR=str(SOURCE), CCACHE_NOHASHDIR="1", CCACHE_SLOPPINESS="pch_defines,time_macros")
    for words in (["cmake", "--preset", "release", "-B", binary, "-DTSR_CUDA=ON", f"-DTSR_CUDA_ARCHS={archs}",
                   f"-DTSR_CUDA_EMULATOR={'ON' if options.emulated else 'OFF'}"],
                  ["cmake", "--build", binary, "--target", "tessera_gpu_acceptance"]
                  + (["tessera_emulated_cuda", "tessera_emulated_nvml"] if options.emulated else [])):
        print(" ".join(map(str, words)), flush=True)
        if subprocess.run([str(w) for w in words], cwd=SOURCE, env=environment).returncode != 0:
            die("the build failed")
    return pack(binary, PACKED)
