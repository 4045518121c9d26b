#!/usr/bin/env python3
"""Write a checkpoint as GGUF: every matrix q8_0, the router and the norms f32.

    python3 export.py --from /tmp/demo -o ../../models/demo-tessera-10m.gguf
"""
import argparse
from pathlib import Path

import gguf
import numpy as np
import torch

import tokenizer
from model import Config, Model

JOINT = {"attn_q", "attn_kv_b"}  # kept by heads in the model, joined in the file
F32 = {"ffn_gate_inp"}


def tensors(model):
    """(GGUF name, array) in file order."""
    yield "token_embd.weight", model.token_embd
    for i, layer in enumerate(model.blk):
        for name, p in layer.named_parameters():
            yield f"blk.{i}.{name}.weight", p.flatten(0, 1) if name in JOINT else p
    yield "output_norm.weight", model.output_norm
    yield "output.weight", model.output


def is_f32(name, ndim):
    return ndim == 1 or name.split(".")[-2] in F32


def metadata(w, c, vocabulary):
    w.add_name("Tessera demo 10M")
    w.add_description("Trained for Tessera on a corpus that models/train_demo_model writes")
    w.add_license("MIT")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    w.add_quantization_version(2)
    for key, value in (
            ("block_count", c.layers), ("context_length", c.ctx), ("embedding_length", c.embd), ("feed_forward_length", c.ff),
            ("attention.head_count", c.heads), ("attention.head_count_kv", c.heads), ("expert_used_count", c.used),
            ("leading_dense_block_count", c.dense), ("vocab_size", c.vocab), ("attention.kv_lora_rank", c.kv_lora),
            ("attention.key_length", c.nope + c.rope), ("attention.value_length", c.v), ("expert_feed_forward_length", c.ff_exp),
            ("expert_count", c.experts), ("expert_shared_count", c.shared), ("expert_gating_func", 1),
            ("rope.dimension_count", c.rope)):
        w.add_uint32("deepseek2." + key, value)
    w.add_float32("deepseek2.rope.freq_base", c.base)
    w.add_float32("deepseek2.attention.layer_norm_rms_epsilon", c.eps)
    w.add_float32("deepseek2.expert_weights_scale", 1.0)
    w.add_bool("deepseek2.expert_weights_norm", False)
    tokens, types, merges = tokenizer.parts(vocabulary)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("deepseek-v3")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges(merges)
    w.add_bos_token_id(tokenizer.BOS)
    w.add_eos_token_id(tokenizer.EOS)
    w.add_pad_token_id(tokenizer.EOS)
    w.add_add_bos_token(True)
    w.add_add_eos_token(False)
    w.add_chat_template(tokenizer.CHAT_TEMPLATE)


def write(model, vocabulary, path):
    """Replaces `path` only once the new file is whole."""
    w = gguf.GGUFWriter(str(path) + ".new", "deepseek2")
    metadata(w, model.c, vocabulary)
    for name, p in tensors(model):
        a = p.detach().float().contiguous().numpy()
        if is_f32(name, a.ndim):
            w.add_tensor(name, a)
        else:
            packed = gguf.quants.quantize(a, gguf.GGMLQuantizationType.Q8_0)
            w.add_tensor(name, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    Path(str(path) + ".new").replace(path)


def read(path):
    """The model and the vocabulary of a file, weights as a runtime sees them: q8_0 unpacked to f32."""
    model = Model(Config())
    file = gguf.GGUFReader(str(path))
    have = {t.name: t for t in file.tensors}
    with torch.no_grad():
        for name, p in tensors(model):
            a = gguf.quants.dequantize(have[name].data, have[name].tensor_type)
            p.copy_(torch.from_numpy(np.array(a)).view_as(p))
    lists = [file.fields["tokenizer.ggml." + key].contents() for key in ("tokens", "merges")]
    return model, tokenizer.of(*lists)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--from", type=Path, required=True, dest="source", help="folder given to train.py as --out")
    ap.add_argument("-o", type=Path, required=True)
    o = ap.parse_args()
    model = Model(Config())
    model.load_state_dict(torch.load(o.source / "checkpoint.pt", weights_only=True)["model"])
    write(model, tokenizer.load(o.source / "vocabulary.json"), o.o)


if __name__ == "__main__":
    main()
