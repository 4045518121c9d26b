#!/usr/bin/env python3
"""Compares what Tessera and ik_llama.cpp say, token by token, for each golden model (tests/goldens), and prints a table.

    bench/peers/greedy.py --peer IK_LLAMA [--build IK_LLAMA/build] [--ours build/release] [--tokens 48] [MODEL ...] [--out greedy.md]

The recorded tokens of a model are the prompt, and the likeliest token follows each time, 48 times. Weights are those of the golden
model in float32, and so are caches, except the peer's values, which it has in float16 at best. For each model:

difference   of the logits from those that transformers recorded, the largest of all positions, over the largest logit, of each side
tokens       how many are the same from the first one on; where they part, by how much each side's choice leads over the other's in its
             own logits, and by how much the logits of the sides differ there, all over the largest logit

Two choices are a tie where a lead is less than that difference while both sides are as near to what is recorded as the golden test
demands. Exit code 1: Tessera is not.
The release preset needs -DTSR_BENCH=ON and the targets model_logits and goldens. Needs numpy and gguf, and g++ for bench/peers/logits.cpp.
"""
import argparse
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = 1e-3  # golden.tolerance


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
    if f"{arch}.attention.key_length_mla" in keys:  # it knows absorbed matrices of 512 + 64 alone
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
    if arch == "chatglm":
        tensors.setdefault("output.weight", tensors["token_embd.weight"])
    # Keys that converters write of published models, and it takes other values for where they are absent.
    for key, like in ("rope.dimension_count", "attention.key_length"), ("expert_shared_feed_forward_length", "expert_feed_forward_length"):
        if f"{arch}.{like}" in keys:
            keys.setdefault(f"{arch}.{key}", keys[f"{arch}.{like}"])


def in_float32(path, out, change=None):
    """The model with all its matrices in float32; `change` may change keys and tensors. Returns the architecture."""
    file = gguf.GGUFReader(path)
    arch = file.fields["general.architecture"].contents()
    keys = {key: (field.contents(), field.types) for key, field in file.fields.items() if not key.startswith("GGUF.") and key != "general.architecture"}
    keys["general.file_type"] = (0, [gguf.GGUFValueType.UINT32])
    tensors = {tensor.name: np.asarray(tensor.data) for tensor in file.tensors}
    tensors = {name: data.astype(np.float32) if data.dtype == np.float16 else data for name, data in tensors.items()}
    if change:
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
    return arch


class Golden:
    def __init__(self, path):
        file = gguf.GGUFReader(path)
        tensors = {tensor.name: np.asarray(tensor.data) for tensor in file.tensors}
        self.tokens, self.positions, self.logits = tensors["tokens"], tensors["positions"], tensors["logits"]
        self.largest = np.abs(self.logits).max()
        self.with_ = file.fields["golden.made_with"].contents()


def run(program, model, golden, tokens, out):
    """Rows of logits and the chosen tokens; or the last line of what a failed program said."""
    done = subprocess.run([program, model, str(tokens), out], input=" ".join(map(str, golden.tokens)), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        wrong = [line for line in lines if any(mark in line for mark in ("error", "Fatal", "GGML_ASSERT", "requires", "model_logits:"))]
        return None, f"exit code {done.returncode}: {(wrong or lines[-1:] or [''])[-1].strip().split(': ', 1)[-1]}"
    rows = np.fromfile(out, np.float32).reshape(len(golden.tokens) + tokens - 1, -1)
    return rows, rows[len(golden.tokens) - 1:].argmax(axis=1)


def off(rows, golden):
    if not np.isfinite(rows).all():
        return float("nan")
    return np.abs(rows[golden.positions] - golden.logits).max() / golden.largest


def compare(name, arch, golden, ours, peer):
    """A line of the table, and whether all is well."""
    cells = [name, arch]
    (our_rows, our_tokens), (peer_rows, peer_tokens) = ours, peer
    if our_rows is None or peer_rows is None:
        cells += [f"{off(rows, golden):.1e}" if rows is not None else "" for rows in (our_rows, peer_rows)]
        cells.append("; ".join(f"{side}: {said}" for side, rows, said in (("ours", *ours), ("peer", *peer)) if rows is None))
        return cells, our_rows is not None and off(our_rows, golden) <= ALLOWED
    ours_off, peer_off = off(our_rows, golden), off(peer_rows, golden)
    cells += [f"{ours_off:.1e}", f"{peer_off:.1e}"]
    well = ours_off <= ALLOWED
    if (our_tokens == peer_tokens).all():
        return cells + [f"{len(our_tokens)} of {len(our_tokens)}"], well
    at = int((our_tokens != peer_tokens).argmax())
    a, b, row = our_tokens[at], peer_tokens[at], len(golden.tokens) - 1 + at
    leads = (our_rows[row, a] - our_rows[row, b]) / golden.largest, (peer_rows[row, b] - peer_rows[row, a]) / golden.largest
    apart = np.abs(our_rows[row] - peer_rows[row]).max() / golden.largest
    tie = min(leads) <= apart and max(ours_off, peer_off) <= ALLOWED
    cells.append(f"{at} of {len(our_tokens)}, then {a} and {b}, which lead by {leads[0]:.1e} and {leads[1]:.1e}; logits differ by {apart:.1e}"
                 + (": a tie" if tie else ""))
    return cells, well


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
    lines = ["| model | architecture | difference | of the peer | tokens that are the same |", "| --- | --- | --- | --- | --- |"]
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        program = build_peer(args.peer, args.build or args.peer / "build", folder)
        for name in names:
            golden = Golden(ROOT / f"tests/goldens/{name}.short.golden.gguf")
            model = folder / "model.gguf"
            arch = in_float32(args.ours / f"goldens/{name}.gguf", model)
            ours = run(args.ours / "bin/model_logits", model, golden, args.tokens, folder / "ours")
            in_float32(args.ours / f"goldens/{name}.gguf", model, for_peer)
            cells, well = compare(name, arch, golden, ours, run(program, model, golden, args.tokens, folder / "peer"))
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
            failed += [] if well else [name]
    text = f"{datetime.date.today()}, {args.tokens} tokens after the recorded ones\n\n" + "\n".join(lines) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text)
    if failed:
        sys.exit(f"further from what is recorded than {ALLOWED}: {', '.join(failed)}")


if __name__ == "__main__":
    main()
