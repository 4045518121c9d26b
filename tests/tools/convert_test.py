"""convert_test.py SOURCE PROGRAM: tools/convert on small checkpoints made here, and what tessera says of its files."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy as np

SOURCE, PROGRAM = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
sys.argv[1:] = []
CONFIG = dict(architectures=["Glm4MoeLiteForCausalLM"], hidden_size=64, num_hidden_layers=2, num_attention_heads=2, kv_lora_rank=32,
              q_lora_rank=32, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=48, intermediate_size=96, first_k_dense_replace=1,
              n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=32, norm_topk_prob=True,
              routed_scaling_factor=1.8, rms_norm_eps=1e-5, vocab_size=262, max_position_embeddings=1024, rope_theta=1e6)


def tensors():
    """As a publisher writes them: norms and routers in f32, one matrix in fp8 with scales of blocks, others in bf16."""
    rng = np.random.default_rng(3)
    c = CONFIG
    e, h, key = c["hidden_size"], c["num_attention_heads"], c["qk_nope_head_dim"] + c["qk_rope_head_dim"]
    shapes = {"model.embed_tokens.weight": (262, e), "model.norm.weight": (e,), "lm_head.weight": (262, e)}
    for i in range(3):  # the last one predicts further tokens
        b = f"model.layers.{i}."
        shapes |= {b + "input_layernorm.weight": (e,), b + "post_attention_layernorm.weight": (e,),
                   b + "self_attn.q_a_proj.weight": (32, e), b + "self_attn.q_a_layernorm.weight": (32,),
                   b + "self_attn.q_b_proj.weight": (h * key, 32), b + "self_attn.kv_a_proj_with_mqa.weight": (48, e),
                   b + "self_attn.kv_a_layernorm.weight": (32,), b + "self_attn.kv_b_proj.weight": (h * 80, 32),
                   b + "self_attn.o_proj.weight": (e, h * 48)}
        if i == 0:
            shapes |= {f"{b}mlp.{part}_proj.weight": (e, 96) if part == "down" else (96, e) for part in ("gate", "up", "down")}
            continue
        shapes |= {b + "mlp.gate.weight": (4, e), b + "mlp.gate.e_score_correction_bias": (4,)}
        for expert in [f"experts.{n}" for n in range(4)] + ["shared_experts"]:
            for part in ("gate", "up", "down"):
                shapes[f"{b}mlp.{expert}.{part}_proj.weight"] = (e, 32) if part == "down" else (32, e)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def brain(values):
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def write_checkpoint(folder, values, config=CONFIG, odd=None):
    header, data = {}, bytearray()

    def put(name, kind, raw, shape):
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data.extend(raw)

    for name, value in values.items():
        if name.endswith("layers.0.mlp.up_proj.weight"):
            put(name, "F8_E4M3", (np.arange(value.size) % 119).astype(np.uint8).tobytes(), value.shape)
            put(name + "_scale_inv", "F32", np.array([[0.5]], np.float32).tobytes(), (1, 1))
        elif value.ndim == 1 or "mlp.gate." in name:
            put(name, "F32", value.tobytes(), value.shape)
        else:
            put(name, "BF16", brain(value).tobytes(), value.shape)
    if odd:
        put(*odd)
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(data))
    (folder / "config.json").write_text(json.dumps(config))
    letters = [chr(b) if 33 <= b < 127 or 161 <= b < 173 or b >= 174 else None for b in range(256)]
    spare = iter(range(256, 512))
    letters = [letter or chr(next(spare)) for letter in letters]
    vocabulary = {letter: i + 4 for i, letter in enumerate(letters)} | {"th": 260}
    (folder / "tokenizer.json").write_text(json.dumps({
        "added_tokens": [{"id": i, "content": f"<|{i}|>", "special": i < 3} for i in range(4)], "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [["t", "h"]]}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|1|>", "chat_template": "{{ messages }}"}))


class Convert(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.out = self.path / "model.gguf"

    def convert(self, *more):
        return subprocess.run([sys.executable, SOURCE / "tools/convert", self.path, "-o", self.out, *more], capture_output=True, text=True)

    def refused(self, *words, more=()):
        done = self.convert(*more)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(list(self.path.glob("*.gguf*")), [])

    def test_tensors_have_their_values(self):
        values = tensors()
        write_checkpoint(self.path, values)
        for kind in ("f32", "q8_0"):
            done = self.convert("--type", kind)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("of layers that predict further tokens", done.stderr)
            read = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(self.out).tensors}
            limit = 0 if kind == "f32" else 0.02

            def same(name, wanted):
                wanted = (brain(wanted).astype(np.uint32) << 16).view(np.float32) if wanted.ndim > 1 else wanted
                self.assertLessEqual(np.abs(read[name] - wanted).max(), limit * np.abs(wanted).max(), name)

            same("token_embd.weight", values["model.embed_tokens.weight"])
            same("blk.1.exp_probs_b.bias", values["model.layers.1.mlp.gate.e_score_correction_bias"])
            for expert in range(4):
                wanted = brain(values[f"model.layers.1.mlp.experts.{expert}.down_proj.weight"]).astype(np.uint32) << 16
                difference = np.abs(read["blk.1.ffn_down_exps.weight"][expert] - wanted.view(np.float32)).max()
                self.assertLessEqual(difference, limit * 4)
            joint = (brain(values["model.layers.0.self_attn.kv_b_proj.weight"]).astype(np.uint32) << 16).view(np.float32)
            k, v = np.split(joint.reshape(2, 80, 32), [32], 1)
            self.assertLessEqual(np.abs(read["blk.0.attn_k_b.weight"] - k.swapaxes(1, 2)).max(), limit * 4)
            self.assertLessEqual(np.abs(read["blk.0.attn_v_b.weight"] - v).max(), limit * 4)
            up = read["blk.0.ffn_up.weight"].reshape(-1)
            # The bytes of F8_E4M3 0, 1, 8, 56 and 118: 0, the least, the least normal, 1 and 224, times the scale.
            for at, value in ((0, 0), (1, 2.0**-9), (8, 2.0**-6), (56, 1), (118, 224)):
                self.assertLessEqual(abs(up[at] - value / 2), limit * 112)

    def test_tessera_takes_the_file(self):
        write_checkpoint(self.path, tensors())
        self.assertEqual(self.convert().returncode, 0)
        said = subprocess.run([PROGRAM, "inspect", self.out], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertNotIn("a run refuses", said.stdout)
        fields = gguf.GGUFReader(self.out).fields
        for key, value in {"deepseek2.expert_gating_func": 2, "deepseek2.leading_dense_block_count": 1, "deepseek2.block_count": 2,
                           "deepseek2.attention.key_length_mla": 48, "deepseek2.rope.freq_base": 1e6,
                           "tokenizer.ggml.eos_token_id": 1, "tokenizer.chat_template": "{{ messages }}"}.items():
            self.assertEqual(fields[key].contents(), value, key)
        self.assertEqual(fields["tokenizer.ggml.tokens"].contents()[260:], ["th", "[PAD261]"])
        self.assertEqual(fields["tokenizer.ggml.token_type"].contents()[:5], [3, 3, 3, 4, 1])

    def test_what_has_no_place_stops_it(self):
        values = tensors()
        write_checkpoint(self.path, values | {"model.layers.0.self_attn.sinks": np.ones(2, np.float32)})
        self.refused("have no place in the file", "layers.0.self_attn.sinks")
        del values["model.layers.1.self_attn.o_proj.weight"]
        write_checkpoint(self.path, values)
        self.refused("layers.1.self_attn.o_proj.weight")
        write_checkpoint(self.path, tensors(), odd=("x.weight_packed", "I32", bytes(4), (1,)))
        self.refused("x.weight_packed is I32")
        write_checkpoint(self.path, tensors(), {k: v for k, v in CONFIG.items() if k != "routed_scaling_factor"})
        self.refused("config.json", "'routed_scaling_factor'")
        write_checkpoint(self.path, tensors(), {k: v for k, v in CONFIG.items() if k != "vocab_size"})
        self.refused("config.json", "'vocab_size'")
        write_checkpoint(self.path, tensors(), CONFIG | {"architectures": ["OtherForCausalLM"]})
        self.refused("OtherForCausalLM", "Glm4MoeLite")
        write_checkpoint(self.path, tensors(), CONFIG | {"architectures": ["DeepseekV3ForCausalLM"]})
        self.refused("give --pre", "kimi-k2")
        (self.path / "tokenizer.json").unlink()
        self.refused("tokenizer.json is missing, and so is tokenizer.model", more=["--pre", "kimi-k2"])

    def test_what_is_no_checkpoint_is_refused(self):
        folder, file = self.path, self.path / "other.bin"
        self.refused(f"{folder}: expected the folder of a published checkpoint", "found no config.json")
        file.write_bytes(b"GGUF")
        self.path = file
        done = self.convert()
        self.path = folder
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"{file}: expected the folder of a published checkpoint", done.stderr)
        self.assertIn("found a file", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_damaged_files_are_refused(self):
        write_checkpoint(self.path, tensors())
        whole = (self.path / "model.safetensors").read_bytes()
        (self.path / "model.safetensors").write_bytes(whole[:-1])
        self.refused("model.safetensors", "fetch the file again")
        (self.path / "model.safetensors").write_bytes(whole.replace(b'"shape": [64]', b'"shape": [60]', 1))
        self.refused("model.safetensors", "is 240 bytes by its shape")
        (self.path / "model.safetensors").write_bytes(whole.replace(b"{", b"[", 1))
        self.refused("model.safetensors: not JSON")
        write_checkpoint(self.path, tensors())
        for name in ("tokenizer.json", "config.json"):
            (self.path / name).write_text('{"model": ')
            self.refused(f"{name}: not JSON", more=["--pre", "glm4"])


if __name__ == "__main__":
    unittest.main()
