#!/usr/bin/env python3
"""Compares what Tessera and ik_llama.cpp say, token by token, for each golden model (tests/goldens), and prints a table.

    bench/peers/greedy.py --peer IK_LLAMA [--build IK_LLAMA/build] [--ours build/release] [--tokens 48] [MODEL ...] [--out greedy.md]

The recorded tokens of a model are the prompt, and the likeliest token follows each time, 48 times. Weights are those of the golden
model in float32, and so are caches, except the peer's values, which it has in float16 at best. For each model:

off          difference of our logits from those that transformers recorded, the largest of all positions, over the largest logit
as recorded  how many of the 48 tokens are the same from the first one on, and the difference of the peer's logits from ours at all recorded
             tokens, over the largest; or why the peer does not load the model
why          where not all are the same: greedy_cases.py
and then     the same of the comparison given there, which shows that there is no other reason

Exit code 1: we are further from transformers than the golden tests allow, or tokens differ in the last column.

The release preset needs -DTSR_BENCH=ON and the targets model_logits and goldens. Needs g++ for bench/peers/logits.cpp, numpy and gguf, and
for models that are recorded for a second line, tools/requirements-training.txt.
"""
import argparse
import contextlib
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np

from greedy_cases import CASES

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDER = ROOT / "testing/goldens/record_goldens"
ALLOWED = 1e-3  # golden.tolerance
ALIKE = 1e-2  # of the peer's logits, whose values are cached in float16


def build_peer(peer, build, folder):
    program = folder / "logits"
    libraries = [next(build.rglob(f"lib{name}.so"), None) or sys.exit(f"{build}: no lib{name}.so") for name in ("llama", "ggml")]
    command = ["g++", "-std=c++20", "-O2", pathlib.Path(__file__).with_name("logits.cpp"), f"-I{peer}/include", f"-I{peer}/ggml/include", *libraries,
               *(f"-Wl,-rpath,{library.parent}" for library in libraries), "-o", program]
    subprocess.run(command, check=True)
    return program


def joint(tensors, name):
    """attn_kv_b of attn_k_b and attn_v_b: per head the keys' rows without rope, then the values'."""
    k, v = tensors.pop(name + "k_b.weight"), tensors.pop(name + "v_b.weight")
    return np.concatenate([k.transpose(0, 2, 1), v], axis=1).reshape(-1, k.shape[1])


def for_peer(arch, keys, tensors):
    """What the peer needs to be told, or to have otherwise, to read a small model as it reads published ones."""
    if f"{arch}.attention.key_length_mla" in keys and arch != "glm-dsa":  # it knows absorbed matrices of 512 + 64 alone
        for part in ("key", "value"):
            keys[f"{arch}.attention.{part}_length"] = keys.pop(f"{arch}.attention.{part}_length_mla")
        keys[f"{arch}.attention.head_count_kv"] = keys[f"{arch}.attention.head_count"]
        for name in [name for name in tensors if name.endswith("attn_k_b.weight")]:
            layer = name.removesuffix("k_b.weight")
            tensors[layer + "kv_b.weight"] = joint(tensors, layer)
    last = keys.pop(f"{arch}.nextn_predict_layers", None) if arch == "deepseek2" else None
    if last:  # of this architecture it knows no layers of prediction
        count, kinds = keys[f"{arch}.block_count"]
        keys[f"{arch}.block_count"] = (count - last[0], kinds)
        for name in [name for name in tensors if name.startswith(f"blk.{count - 1}.")]:
            del tensors[name]
    if arch in ("chatglm", "phi3"):  # tied embeddings of them it does not know
        tensors.setdefault("output.weight", tensors["token_embd.weight"])
    keys.pop("general.name")  # "phi3" in it asks for tokens of that name


def in_float32(path, out, *changes):
    """The model with all its matrices in float32; `changes` may change keys and tensors."""
    file = gguf.GGUFReader(path)
    arch = file.fields["general.architecture"].contents()
    keys = {key: (field.contents(), field.types) for key, field in file.fields.items() if not key.startswith("GGUF.") and key != "general.architecture"}
    keys["general.file_type"] = (0, [gguf.GGUFValueType.UINT32])
    tensors = {tensor.name: np.asarray(tensor.data) for tensor in file.tensors}
    tensors = {name: data.astype(np.float32) if data.dtype == np.float16 else data for name, data in tensors.items()}
    for change in changes:
        change(arch, keys, tensors)
    writer = gguf.GGUFWriter(out, arch)
    for key, (value, kinds) in keys.items():
        writer.add_key_value(key, value, kinds[0], kinds[-1] if len(kinds) > 1 else None)
    for name, data in tensors.items():
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Golden:
    def __init__(self, path):
        file = gguf.GGUFReader(path)
        tensors = {tensor.name: np.asarray(tensor.data) for tensor in file.tensors}
        self.tokens, self.positions, self.logits = tensors["tokens"], tensors["positions"], tensors["logits"]
        self.largest = np.abs(self.logits).max()


class Model:
    """A golden model: the folder of its golden, and its file."""

    def __init__(self, name, goldens, path):
        self.name, self.path, self.golden = name, path, Golden(goldens / f"{name}.short.golden.gguf")


def record(name, case, folder):
    """The model with another configuration, computed by transformers."""
    sys.path.append(str(RECORDER))
    import cases
    import record_models
    import seeded
    import torch
    one = dict(cases.CASES[name]) | case.case
    one["config"] = one["config"] | case.config
    torch.manual_seed(0)
    model = record_models.make_model(one)
    described, path = folder / f"{name}.seeded.gguf", folder / f"{name}.gguf"
    with contextlib.redirect_stdout(sys.stderr):
        record_models.write_and_fill(described, name, model, one)
        record_models.record(name, "short", model, record_models.RouterWatch(model), one, folder)
    weights = seeded.read_weights(gguf.GGUFReader(described))
    in_float32(described, path, lambda arch, keys, tensors: (tensors.update(weights), [keys.pop(key) for key in list(keys) if key.startswith(seeded.PREFIX)]))
    return Model(name, folder, path)


def by_numpy(path, golden, tokens, change):
    """Logits of the recorded tokens and the chosen ones, by the reference in float64 with a change."""
    sys.path.append(str(RECORDER))
    import numpy_models
    file = numpy_models.File(path)
    said = list(golden.tokens)
    for _ in range(tokens - 1):
        said.append(int(numpy_models.logits(file, np.array(said), change)[0][-1].argmax()))
    return numpy_models.logits(file, np.array(said), change)[0].astype(np.float32)


class Sides:
    """Runs both programs on files that it writes in `folder`."""

    def __init__(self, folder, ours, peer, tokens):
        self.folder, self.ours, self.peer, self.tokens = folder, ours, peer, tokens

    def run(self, program, path, golden, *flags):
        """Rows of logits, or the last line of what a failed program said."""
        out = self.folder / "rows"
        done = subprocess.run([program, path, str(self.tokens), out, *flags], input=" ".join(map(str, golden.tokens)), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if line.strip()]
            wrong = [line for line in lines if any(mark in line for mark in ("error", "Fatal", "GGML_ASSERT", "requires", "model_logits:"))]
            return (wrong or lines[-1:] or [f"exit code {done.returncode}"])[-1].strip().rsplit("loading model: ", 1)[-1].split(": ", 1)[-1]
        return np.fromfile(out, np.float32).reshape(len(golden.tokens) + self.tokens - 1, -1)

    def our_rows(self, model, both=None, ours=None, reference=""):
        path = self.folder / "ours.gguf"
        in_float32(model.path, path, *(change for change in (both, ours) if change))
        return by_numpy(path, model.golden, self.tokens, reference) if reference else self.run(self.ours, path, model.golden)

    def peer_rows(self, model, both=None, flags=()):
        path = self.folder / "peer.gguf"
        in_float32(model.path, path, for_peer, *([both] if both else []))
        return self.run(self.peer, path, model.golden, *flags)


def compare(model, ours, peer, recorded):
    """(how far we are from what is recorded, the peer from us, how many tokens are the same)."""
    golden, count = model.golden, len(model.golden.tokens)
    if isinstance(ours, str):
        sys.exit(f"{model.name}: {ours}")
    off = np.abs(ours[golden.positions] - golden.logits).max() / golden.largest if recorded else None
    if isinstance(peer, str):
        return off, None, peer
    chosen = [rows[count - 1:].argmax(axis=1) for rows in (ours, peer)]
    parts = np.flatnonzero(chosen[0] != chosen[1])
    return off, np.abs(ours[:count] - peer[:count]).max() / golden.largest, int(parts[0]) if len(parts) else len(chosen[0])


def result(apart, same):
    return f"not loaded: {same}" if isinstance(same, str) else f"{same}, {apart:.0e}"


def architecture(path):
    return gguf.GGUFReader(path).fields["general.architecture"].contents()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names of golden models; all if none is given")
    parser.add_argument("--peer", type=pathlib.Path, required=True, help="folder of ik_llama.cpp's sources")
    parser.add_argument("--build", type=pathlib.Path, help="where it was built (PEER/build)")
    parser.add_argument("--ours", type=pathlib.Path, default=ROOT / "build/release", help="where Tessera was built")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    names = args.models or sorted(path.name.removesuffix(".short.golden.gguf") for path in (ROOT / "tests/goldens").glob("*.short.golden.gguf"))
    lines = ["| model | architecture | off | as recorded | why | and then |", "| --- | --- | --- | --- | --- | --- |"]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sides = Sides(folder, args.ours / "bin/model_logits", build_peer(args.peer, args.build or args.peer / "build", folder), args.tokens)
        for name in names:
            model = Model(name, ROOT / "tests/goldens", args.ours / f"goldens/{name}.gguf")
            off, apart, same = compare(model, sides.our_rows(model), sides.peer_rows(model), True)
            cells = [name, architecture(model.path), f"{off:.0e}", result(apart, same)]
            wrong += [name] if off > ALLOWED else []
            case = CASES.get(name) if same != args.tokens or apart > ALIKE else None
            if case:
                if case.config or case.case:
                    model = record(name, case, folder)
                ours = sides.our_rows(model, case.both, case.ours, case.reference)
                as_recorded = not (case.both or case.ours or case.reference)
                off, apart, same = compare(model, ours, sides.peer_rows(model, case.both, case.flags), as_recorded)
                cells += [case.why, result(apart, same)]
                wrong += [name] if same != args.tokens or off is not None and off > ALLOWED else []
            lines.append("| " + " | ".join(cells + [""] * (6 - len(cells))) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    text = f"{datetime.date.today()}, {args.tokens} tokens after the recorded ones\n\n" + "\n".join(lines) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text)
    if wrong:
        sys.exit(f"not as it should be: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
