"""convert_models_test.py SOURCE PROGRAM GOLDENS: each golden model, written as its publisher would, becomes the same file again.

Equal tensors and keys are equal logits: those that tests/goldens record, which every golden model meets."""

import base64
import importlib.machinery
import importlib.util
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy as np
import tokenizers

import published

SOURCE, PROGRAM, GOLDENS = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3])
sys.argv[1:] = []
sys.path.append(str(SOURCE / "tools"))
loader = importlib.machinery.SourceFileLoader("convert_tool", str(SOURCE / "tools/convert"))
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("convert_tool", loader))
sys.dont_write_bytecode = True
loader.exec_module(tool)
from cases import CASES  # noqa: E402 (the tool adds the folder)
from conversion.errors import Unsupported  # noqa: E402

# Two layouts of latent attention, and gate and up in one tensor: the file has one of them.
SAME = {"attn_kv_b.weight", "attn_k_b.weight", "attn_v_b.weight", "ffn_gate_up_exps.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight",
        "attn_qkv.weight", "attn_qkv.bias", "attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_q.bias", "attn_k.bias", "attn_v.bias"}
LENGTHS = {"attention.key_length", "attention.value_length", "attention.head_count_kv", "attention.key_length_mla", "attention.value_length_mla"}


def read(path):
    reader = gguf.GGUFReader(path)
    return ({name: field.contents() for name, field in reader.fields.items()},
            {t.name: t.data for t in reader.tensors})


def write_tokenizer(folder, keys):
    tokens, types = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"]
    control = [i for i, kind in enumerate(types) if kind == gguf.TokenType.CONTROL]
    (folder / "tokenizer.json").write_text(json.dumps({
        "added_tokens": [{"id": i, "content": tokens[i], "special": True} for i in control], "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {tokens[i]: i for i in range(len(tokens)) if i not in control},
                  "merges": keys["tokenizer.ggml.merges"]}}))


class Models(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.out = self.path / "model.gguf"

    def write(self, name, change=lambda tensors, config: None):
        keys, tensors = read(GOLDENS / f"{name}.gguf")
        arch = keys["general.architecture"]
        made = published.published_tensors(arch, CASES[name], tensors)
        config = published.published_config(arch, CASES[name], keys[f"{arch}.attention.layer_norm_rms_epsilon"])
        change(made, config)
        published.write_safetensors(self.path / "model.safetensors", made)
        (self.path / "config.json").write_text(json.dumps(config))
        write_tokenizer(self.path, keys)
        return keys, tensors

    def same(self, name, change=lambda tensors, config: None):
        wanted, tensors = self.write(name, change)
        case, arch = CASES[name], wanted["general.architecture"]
        tool.convert(self.path, self.out, "f16", wanted["tokenizer.ggml.pre"])
        keys, got = read(self.out)

        def counted(names):
            return {one for one in names if not one.startswith(f"blk.{case['config']['num_hidden_layers']}.")}

        other = case.get("fused") or case.get("layout") in ("joint", "all") and arch != "minicpm3"
        unequal = {one for one in counted(tensors) ^ set(got) if not (other and one.split(".", 2)[-1] in SAME)}
        self.assertEqual(unequal, set())
        for one in counted(tensors) & set(got):
            if arch in published.SHIFTED and "norm" in one:  # 1 is taken away and added
                np.testing.assert_allclose(got[one], tensors[one], atol=1e-6)
            else:
                np.testing.assert_array_equal(got[one], tensors[one].reshape(got[one].shape), one)
        own = {key for key in wanted if key.startswith(arch + ".")} | {key for key in keys if key.startswith(arch + ".")}
        ignored = {f"{arch}.{key}" for key in LENGTHS} if other else set()
        if case.get("nextn"):
            ignored |= {arch + ".block_count", arch + ".nextn_predict_layers"}
        if case.get("gating_key") is False:
            ignored.add(arch + ".expert_gating_func")
        for key in sorted(own - ignored):
            self.assertIn(key, keys)
            self.assertIn(key, wanted)
            if isinstance(wanted[key], float):
                self.assertAlmostEqual(keys[key] / wanted[key], 1, places=6, msg=key)
            else:
                self.assertEqual(keys[key], wanted[key], key)
        said = subprocess.run([PROGRAM, "inspect", self.out], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        _, refuses, why = said.stdout.partition("a run refuses")
        self.assertFalse(refuses, why)


    def refused(self, name, words, change):
        self.write(name, change)
        with self.assertRaisesRegex(Unsupported, words):
            tool.convert(self.path, self.out, "f16", None)

    def test_granite_4_without_experts(self):
        """Its class has them; the network lies where the shared expert of others does."""
        def hybrid(made, config):
            for name in [one for one in made if one.endswith(".mlp.gate_proj.weight")]:
                up, down = name.replace("gate_proj", "up_proj"), name.replace("gate_proj", "down_proj")
                layer = name.removesuffix("mlp.gate_proj.weight")
                made[layer + "shared_mlp.input_linear.weight"] = np.concatenate([made.pop(name), made.pop(up)])
                made[layer + "shared_mlp.output_linear.weight"] = made.pop(down)
            config.update(architectures=["GraniteMoeHybridForCausalLM"], layer_types=["attention"] * 2, num_local_experts=0,
                          position_embedding_type="rope", shared_intermediate_size=config.pop("intermediate_size"))

        self.same("granite", hybrid)

    def converted(self, name, change):
        """Keys of the file, without the architecture's name before them, and what a run says against it."""
        self.out.unlink(missing_ok=True)
        keys, _ = self.write(name, change)
        tool.convert(self.path, self.out, "f16", keys["tokenizer.ggml.pre"])
        said = subprocess.run([PROGRAM, "inspect", self.out], capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertNotIn("a run refuses", said.stdout)
        keys, _ = read(self.out)
        return {key.removeprefix(keys["general.architecture"] + "."): value for key, value in keys.items()}

    def test_gemma3_has_what_its_class_reads(self):
        def text(**changes):
            return lambda made, config: config["text_config"].update(changes)
        plain = self.converted("gemma3", text())
        self.assertFalse({"attention.scale", "rope.freq_base_swa", "attention.sliding_window_pattern"} & set(plain))
        self.assertAlmostEqual(self.converted("gemma3", text(query_pre_attn_scalar=48))["attention.scale"], 48 ** -0.5, places=6)
        without = self.converted("gemma3", lambda made, config: config["text_config"].pop("query_pre_attn_scalar"))
        self.assertAlmostEqual(without["attention.scale"], 256 ** -0.5, places=6)  # the class's own
        self.assertEqual(self.converted("gemma3", text(rope_local_base_freq=5000.0))["rope.freq_base_swa"], 5000)
        pattern = [True, False] * 3
        for changes in (dict(layer_types=["sliding_attention", "full_attention"] * 3), dict(sliding_window_pattern=2)):
            def change(made, config):
                config["text_config"].pop("layer_types", None)
                config["text_config"].update(changes)
            self.assertEqual(self.converted("gemma3", change)["attention.sliding_window_pattern"], pattern)
        self.refused("gemma3", "use_bidirectional_attention is True", text(use_bidirectional_attention=True))

    def test_windows_are_those_of_the_class(self):
        def of(name, **changes):
            def change(made, config):
                config.pop("layer_types", None)
                config.update(changes, architectures=[name + "ForCausalLM"])
            return change
        mistral = self.converted("llama-gqa", of("Mistral", sliding_window=70))
        self.assertEqual(mistral["attention.sliding_window"], 70)
        self.assertTrue(all(mistral["attention.sliding_window_pattern"]))
        for name, changes in (("llama-gqa", of("Mistral", sliding_window=None)), ("llama-gqa", of("Llama", sliding_window=70)),
                              ("qwen2", of("Qwen2", sliding_window=70, max_window_layers=0)),
                              ("qwen2", of("Qwen2", sliding_window=70, max_window_layers=0, use_sliding_window=False)),
                              ("qwen2", of("Qwen2", sliding_window=70, max_window_layers=99, use_sliding_window=True))):
            self.assertNotIn("attention.sliding_window", self.converted(name, changes))
        self.refused("qwen2", "a window of 70 tokens", of("Qwen2", sliding_window=70, max_window_layers=0, use_sliding_window=True))
        self.refused("seed-oss", "neither layer_types nor max_window_layers", of("SeedOss", sliding_window=70))

    def test_heads_are_as_long_as_the_tensors_say(self):
        """Where config.json does not: a class takes a constant, another the width of the model over the number of heads."""
        for name in ("ernie4_5-moe", "ernie4_5", "seed-oss", "chatglm", "glm4", "qwen3-tied"):
            wanted, _ = self.write(name)
            arch = wanted["general.architecture"]
            got = self.converted(name, lambda made, config: config.pop("head_dim", None))
            width = wanted[f"{arch}.embedding_length"] // wanted[f"{arch}.attention.head_count"]
            key = "attention.key_length"
            self.assertEqual(got.get(key, width), wanted.get(f"{arch}.{key}", width), name)
        self.refused("qwen3-tied", "config.json says", lambda made, config: config.update(head_dim=2 * config["head_dim"]))

    def test_mxfp4_stays(self):
        """The values of blocks as the publisher's code has them: the low half of a byte first."""
        rng = np.random.default_rng(5)
        wanted = {}

        def pack(made, config):
            for name in [one for one in made if one.endswith(("gate_up_proj", "down_proj"))]:
                count, inputs, rows = made.pop(name).shape
                blocks = rng.integers(0, 256, (count, rows, inputs // 32, 16), dtype=np.uint8)
                scales = rng.integers(118, 130, (count, rows, inputs // 32), dtype=np.uint8)
                made |= {name + "_blocks": blocks, name + "_scales": scales}
                values = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], np.float32)
                pairs = np.stack([values[blocks & 15], values[blocks >> 4]], -1)
                wanted[name] = (pairs.reshape(*scales.shape, 32) * np.exp2(scales[..., None] - np.float32(127))).reshape(count, rows, inputs)

        self.write("gpt-oss", pack)
        tool.convert(self.path, self.out, "q8_0", None)
        self.assertEqual(read(self.out)[0]["tokenizer.ggml.pre"], "gpt-4o")
        found = 0
        for t in gguf.GGUFReader(self.out).tensors:
            if not t.name.endswith("_exps.weight"):
                continue
            self.assertEqual(t.tensor_type, gguf.GGMLQuantizationType.MXFP4)
            layer, part = t.name.split(".")[1], t.name.split("_")[1]
            source = f"model.layers.{layer}.mlp.experts."
            rows = {"gate": slice(0, None, 2), "up": slice(1, None, 2), "down": slice(None)}[part]
            all_rows = wanted[source + ("down_proj" if part == "down" else "gate_up_proj")]
            np.testing.assert_array_equal(gguf.quants.dequantize(t.data, t.tensor_type), all_rows[:, rows], t.name)
            found += 1
        self.assertEqual(found, 9)
        said = subprocess.run([PROGRAM, "inspect", self.out], capture_output=True, text=True)
        self.assertNotIn("a run refuses", said.stdout)

    def test_pieces_of_sentencepiece(self):
        """tokenizer.model beside a tokenizer.json without bytes as letters, as Gemma 3 has it."""
        keys, _ = self.write("gemma3")
        (self.path / "tokenizer.json").write_text(json.dumps({
            "decoder": {"type": "ByteFallback"}, "model": {"type": "BPE", "vocab": {}, "merges": []},
            "added_tokens": [{"id": 3, "content": "<turn>", "special": True}, {"id": 9, "content": "<b>", "special": False}]}))
        pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("spare", 0.0, 4)] + [
            (f"<0x{byte:02X}>", 0.0, 6) for byte in range(4)] + [("\u2581a", -1.5, 1), ("bb", -2.0, 1)]
        self.sentencepiece(pieces, 2)
        tool.convert(self.path, self.out, "f16", None)
        keys, _ = read(self.out)
        self.assertEqual(keys["tokenizer.ggml.model"], "llama")
        self.assertEqual(keys["tokenizer.ggml.tokens"][3:11], ["<turn>", "<0x00>", "<0x01>", "<0x02>", "<0x03>", "\u2581a", "<b>", "[PAD10]"])
        self.assertEqual(keys["tokenizer.ggml.token_type"][:11], [2, 3, 3, 3, 6, 6, 6, 6, 1, 4, 5])
        self.assertEqual(keys["tokenizer.ggml.scores"][8], -1.5)
        self.assertIs(keys["tokenizer.ggml.add_space_prefix"], False)
        for data, words in ((b"\x0a\xff", "not a model of SentencePiece"), (b"\x0a\x03\x0a\x01", "not a model of SentencePiece")):
            (self.path / "tokenizer.model").write_bytes(data)
            with self.assertRaisesRegex(Unsupported, words):
                tool.convert(self.path, self.out, "f16", None)
        self.sentencepiece(pieces, 1)
        with self.assertRaisesRegex(Unsupported, "of type 1; BPE"):
            tool.convert(self.path, self.out, "f16", None)

    def sentencepiece(self, pieces, kind):
        def field(number, data):
            return bytes([number << 3 | 2, len(data)]) + data
        data = b"".join(field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, type_]))
                        for text, score, type_ in pieces)
        (self.path / "tokenizer.model").write_bytes(data + field(2, bytes([0x18, kind])) + field(3, b"\x18\x00"))

    def test_merges_of_sentencepiece(self):
        """tokenizer.json alone, made of such a model: the same tokens as the library tokenizers makes."""
        self.write("llama-plain")
        letters = [f"<0x{byte:02X}>" for byte in range(256)]
        merges = ["\u2581 a", "a b", "\u2581 ab", "\u2581a b", "c c", "cc c", "c cc", "\u2581 \u2581"]
        vocab = ["<unk>", "<s>", "</s>", *letters, "\u2581", "a", "b", "c"]
        vocab += list(dict.fromkeys(one.replace(" ", "") for one in merges))

        def told(**changes):
            model = dict(type="BPE", unk_token="<unk>", fuse_unk=True, byte_fallback=True, vocab={text: i for i, text in enumerate(vocab)}, merges=merges)
            return json.dumps(dict(version="1.0", truncation=None, padding=None, added_tokens=[
                dict(id=i, content=text, special=True, single_word=False, lstrip=False, rstrip=False, normalized=False)
                for i, text in enumerate(vocab[:3])], normalizer=dict(type="Sequence", normalizers=[
                    dict(type="Prepend", prepend="\u2581"), dict(type="Replace", pattern=dict(String=" "), content="\u2581")]),
                pre_tokenizer=None, post_processor=None, decoder=dict(type="ByteFallback"), model=model | changes))
        (self.path / "tokenizer.json").write_text(told())
        tool.convert(self.path, self.out, "f16", None)
        keys, _ = read(self.out)
        self.assertEqual((keys["tokenizer.ggml.model"], keys["tokenizer.ggml.add_space_prefix"]), ("llama", True))
        self.assertEqual(keys["tokenizer.ggml.tokens"][:len(vocab)], vocab)
        self.assertEqual([keys["tokenizer.ggml.token_type"][i] for i in (0, 1, 3, 259)], [2, 3, 6, 1])
        theirs = tokenizers.Tokenizer.from_str(told())
        for text in ("ab", "a b  ab", "cccc ccc", "cabc   \u00e9\u4e2d", "bbab ab"):
            said = subprocess.run([PROGRAM, "tokenize", "-m", self.out, "--ids", "--no-bos", "-p", text], capture_output=True, text=True)
            self.assertEqual([int(one) for one in said.stdout.replace(",", " ").split()], theirs.encode(text, add_special_tokens=False).ids, text)
        for changes, words in ((dict(byte_fallback=False), "byte_fallback"), (dict(type="Unigram"), "type Unigram"),
                               (dict(merges=merges[:5]), "no merge gives 'ccc'"),
                               (dict(merges=merges[:5] + ["cc c", "\u2581 \u2581", "c cc"]), "others between them")):
            (self.path / "tokenizer.json").write_text(told(**changes))
            with self.assertRaisesRegex(Unsupported, words):
                tool.convert(self.path, self.out, "f16", None)

    def test_ranks_of_tiktoken(self):
        """As GLM-4 and Kimi-K2 have them, with further tokens beside them."""
        keys, _ = self.write("kimi-k2")
        tokens = [bytes([byte]) for byte in range(255, -1, -1)] + [b"he", b"ll", b"llo", b"hello", b"xyz"]
        (self.path / "tiktoken.model").write_bytes(b"".join(base64.b64encode(one) + b" %d\n" % i for i, one in enumerate(tokens)))
        (self.path / "tokenizer.json").unlink()
        (self.path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": {
            "261": {"content": "[EOS]", "special": True}}, "eos_token": "[EOS]"}))
        tool.convert(self.path, self.out, "f16", "kimi-k2")
        keys, _ = read(self.out)
        self.assertEqual(keys["tokenizer.ggml.tokens"][255 - ord("a")], "a")
        self.assertEqual(keys["tokenizer.ggml.tokens"][256:262], ["he", "ll", "llo", "hello", "xyz", "[EOS]"])
        self.assertEqual(keys["tokenizer.ggml.merges"], ["h e", "l l", "ll o", "he llo"])
        self.assertEqual((keys["tokenizer.ggml.token_type"][261], keys["tokenizer.ggml.eos_token_id"]), (3, 261))
        (self.path / "tiktoken.model").write_bytes(base64.b64encode(b"a") + b" 0\nb\n")
        with self.assertRaisesRegex(Unsupported, "line 2"):
            tool.convert(self.path, self.out, "f16", "kimi-k2")

    def test_pre_tokenizers_are_the_published_models(self):
        for name, pre in (("minimax-m2", "minimax-m2"), ("seed-oss", "seed-coder"), ("hunyuan-moe", "hunyuan"), ("exaone4", "exaone4")):
            self.write(name)
            tool.convert(self.path, self.out, "f16", None)
            self.assertEqual(read(self.out)[0]["tokenizer.ggml.pre"], pre)
        self.refused("granite", "give --pre, for instance refact, dbrx", lambda made, config: None)

    def test_one_matrix_of_grouped_queries(self):
        """InternLM2's layout, of a model of Llama's shape."""
        names = {"model.embed_tokens.": "model.tok_embeddings.", "lm_head.": "output.", ".input_layernorm.": ".attention_norm.",
                 ".post_attention_layernorm.": ".ffn_norm.", ".self_attn.o_proj.": ".attention.wo.", ".mlp.gate_proj.": ".feed_forward.w1.",
                 ".mlp.down_proj.": ".feed_forward.w2.", ".mlp.up_proj.": ".feed_forward.w3."}

        def rename(made, config):
            config.update(architectures=["InternLM2ForCausalLM"])
            del config["rope_scaling"]
            for i in range(config["num_hidden_layers"]):
                q, k, v = (made.pop(f"model.layers.{i}.self_attn.{part}_proj.weight") for part in "qkv")
                width = config["head_dim"]
                each = config["num_attention_heads"] // config["num_key_value_heads"]
                made[f"model.layers.{i}.attention.wqkv.weight"] = np.concatenate([np.concatenate([
                    q[g * each * width:(g + 1) * each * width], k[g * width:(g + 1) * width], v[g * width:(g + 1) * width]])
                    for g in range(config["num_key_value_heads"])])
            for name in list(made):
                for theirs, other in names.items():
                    if theirs in name:
                        made[name.replace(theirs, other)] = made.pop(name)

        _, tensors = self.write("llama-gqa", rename)
        tool.convert(self.path, self.out, "f16", "default")
        keys, got = read(self.out)
        self.assertEqual(keys["general.architecture"], "internlm2")
        self.assertEqual(set(got), set(tensors) - {"rope_freqs.weight"})
        for name, values in got.items():
            np.testing.assert_array_equal(values, tensors[name], name)

    def test_older_layout_of_chatglm(self):
        """The names and the configuration that ChatGLM3 and GLM-4 came with."""
        def older(made, config):
            for i in range(config["num_layers"]):
                base = f"model.layers.{i}."
                for kind in ("weight", "bias"):
                    made[f"{base}self_attention.query_key_value.{kind}"] = np.concatenate(
                        [made.pop(f"{base}self_attn.{part}_proj.{kind}") for part in "qkv"])
            made["transformer.output_layer.weight"] = made["model.embed_tokens.weight"]
            made["transformer.rotary_pos_emb.inv_freq"] = np.ones(4, np.float32)
            for name in [one for one in made if one.startswith("model.")]:
                other = name
                for theirs, older in (("model.embed_tokens.", "transformer.embedding.word_embeddings."), ("model.layers.", "transformer.encoder.layers."),
                                      ("model.norm.", "transformer.encoder.final_layernorm."), ("self_attn.o_proj.", "self_attention.dense."),
                                      ("mlp.gate_up_proj.", "mlp.dense_h_to_4h."), ("mlp.down_proj.", "mlp.dense_4h_to_h.")):
                    other = other.replace(theirs, older)
                made[other] = made.pop(name)

        def change(made, config):
            theirs = dict(num_layers="num_hidden_layers", kv_channels="head_dim", ffn_hidden_size="intermediate_size", layernorm_epsilon="rms_norm_eps",
                          multi_query_group_num="num_key_value_heads", padded_vocab_size="vocab_size", seq_length="max_position_embeddings")
            config.update({name: config.pop(ours) for name, ours in theirs.items()}, architectures=["ChatGLMModel"], multi_query_attention=True,
                          rope_ratio=config.pop("rope_theta") / 10000, rmsnorm=True, add_bias_linear=False, add_qkv_bias=True)
            for gone in ("partial_rotary_factor", "tie_word_embeddings", "attention_bias"):
                del config[gone]
            older(made, config)

        wanted, tensors = self.write("chatglm", change)
        tool.convert(self.path, self.out, "f16", None)
        keys, got = read(self.out)
        np.testing.assert_array_equal(got.pop("output.weight"), tensors["token_embd.weight"])
        self.assertEqual(set(got), set(tensors))
        for name, values in got.items():
            np.testing.assert_array_equal(values, tensors[name], name)
        for key in [one for one in wanted if one.startswith("chatglm.")]:
            self.assertAlmostEqual(keys[key], wanted[key], places=6, msg=key)
        self.refused("chatglm", "add_bias_linear is True", lambda made, config: (change(made, config), config.update(add_bias_linear=True)))

    def test_text_of_a_model_with_images(self):
        """Qwen3-VL's layout: experts together and turned."""
        def join(made, config):
            text = dict(config)
            text.pop("architectures")
            text["rope_scaling"] = dict(type="mrope", mrope_section=[4, 6, 6])
            config.clear()
            config.update(architectures=["Qwen3VLMoeForConditionalGeneration"], text_config=text)
            for i in range(text["num_hidden_layers"]):
                base = f"model.layers.{i}.mlp.experts."
                gate, up, down = (np.stack([made.pop(f"{base}{n}.{part}_proj.weight") for n in range(text["num_experts"])]) for part in (
                    "gate", "up", "down"))
                made[base + "gate_up_proj"] = np.concatenate([gate, up], 1).swapaxes(1, 2)
                made[base + "down_proj"] = down.swapaxes(1, 2)
            for name in list(made):
                if name.startswith("model."):
                    made[name.replace("model.", "model.language_model.", 1)] = made.pop(name)
            made["model.visual.blocks.0.norm1.weight"] = np.ones(4, np.float32)

        _, tensors = self.write("qwen3moe-norm", join)
        tool.convert(self.path, self.out, "f16", None)
        for name, values in read(self.out)[1].items():
            np.testing.assert_array_equal(values, tensors[name], name)

    def test_windows_and_scaling(self):
        def later(made, config):
            config.update(use_sliding_window=True, sliding_window=32, max_window_layers=1,
                          rope_scaling=dict(type="yarn", factor=4.0, original_max_position_embeddings=2048))
        self.write("qwen3-tied", later)
        tool.convert(self.path, self.out, "f16", None)
        keys, _ = read(self.out)
        self.assertEqual(keys["qwen3.attention.sliding_window"], 32)
        self.assertEqual(keys["qwen3.attention.sliding_window_pattern"], [False, True])
        self.assertEqual((keys["qwen3.rope.scaling.type"], keys["qwen3.rope.scaling.factor"]), ("yarn", 4.0))

    def test_gemma_without_scaling(self):
        self.write("gemma3", lambda made, config: config["text_config"].pop("rope_scaling"))
        tool.convert(self.path, self.out, "f16", None)
        self.assertNotIn("gemma3.rope.scaling.type", read(self.out)[0])

    def test_layers_of_prediction_are_left_out(self):
        self.write("mimo2", lambda made, config: made.update({"model.mtp.layers.0.input_layernorm.weight": np.ones(32, np.float32)}))
        tool.convert(self.path, self.out, "f16", None)
        self.assertFalse([one for one in read(self.out)[1] if "mtp" in one])

    def test_what_is_not_computed_is_refused(self):
        self.refused("qwen2", "activation is 'relu'", lambda made, config: config.update(hidden_act="relu"))
        self.refused("qwen2", "type 'dynamic'", lambda made, config: config.update(rope_scaling=dict(type="dynamic", factor=2.0)))
        yarn = dict(type="yarn", factor=4.0, original_max_position_embeddings=2048)
        for more in (dict(mscale=0.7), dict(attention_factor=1.2)):
            self.refused("qwen2", f"{next(iter(more))} of rope scaling", lambda made, config: config.update(rope_scaling=yarn | more))
        self.refused("gpt-oss", "swiglu_limit is 5", lambda made, config: config.update(swiglu_limit=5.0))
        self.refused("minicpm3", "scale_emb is 10", lambda made, config: config.update(scale_emb=10))
        self.refused("granitemoe", "'mamba'", lambda made, config: config.update(
            architectures=["GraniteMoeHybridForCausalLM"], layer_types=["mamba", "attention"]))
        self.refused("mimo2", "swa_head_dim is 8", lambda made, config: config.update(swa_head_dim=8))
        self.refused("gemma3", "final_logit_softcapping", lambda made, config: config["text_config"].update(final_logit_softcapping=30.0))
        self.refused("step35", "moe_layers_enum", lambda made, config: config.update(moe_layers_enum="1,3"))
        self.refused("step35", "num_attention_groups of attention_other_setting is 4", lambda made, config: config[
            "attention_other_setting"].update(num_attention_groups=4))
        self.refused("step35", "moe_router_activation is softmax", lambda made, config: config.update(moe_router_activation="softmax"))
        self.refused("step35", "type 'yarn'", lambda made, config: config["rope_scaling"].update(rope_type="yarn"))
        self.refused("hunyuan-moe", "layers differ", lambda made, config: config.update(moe_topk=[1, 2]))


def test_of(name):
    return lambda self: self.same(name)


for case in sorted(set(CASES) - {"minicpm"}):  # whose checkpoints the tool does not read
    setattr(Models, "test_" + case.replace("-", "_"), test_of(case))


if __name__ == "__main__":
    unittest.main()
