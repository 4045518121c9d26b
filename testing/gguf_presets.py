"""Shapes of models for make_gguf.py: those of published configurations (config.json), and small ones for tests.

A preset is a dict: `arch`, the sizes (embd, layers, dense, heads, q_lora, kv_lora, nope, rope, v, ff, experts, used, shared,
ff_exp, vocab, ctx), the router (gating: 0 no key, 1 softmax, 2 sigmoid; bias: exp_probs_b; scale, norm, groups, groups_used),
`base` and `yarn` of the rotary embedding, `eps`, `pre` (tokenizer.ggml.pre) and what only some have: `tied` embeddings,
`temperature` (scale, length) of queries by position, `indexer` (heads, key length, top_k, how many of four layers have one),
`nextn`, further prediction layers, `bare` files without keys of experts and length of values, and LongRoPE's `factors`.

Grouped queries have `kv_heads` and `head`, their length, in place of the sizes of latent attention; also `rotated`, how many
elements of a head are; qkv_bias; `head_norm` ("heads", "rows"); `norms`, those of a layer; `fused` qkv; `fused_up`, gate and up
in one matrix; `shared_gate`; `biased` experts, routers and outputs of attention; `sinks`; `step`, from layer to layer with experts; `value`, the length of a
head's values where it is not the keys'; and `keys`, further ones with their types. Where layers with a window differ: `windows`, whether layer i has one,
and what they have of `local_heads`, `local_kv_heads`; then they alone have `sinks`. `gate`: of each head; `shared_length`: what files say of shared experts in
place of their number; `factors`: how many rope_freqs.weight has.
"""


def preset(**own):
    p = dict(arch="deepseek2", dense=1, q_lora=0, kv_lora=512, nope=128, rope=64, v=128, shared=1, gating=2, scale=1.0, norm=True,
             groups=0, groups_used=0, base=10000.0, eps=1e-6, yarn=None, tied=False, bare=False, factors=False, temperature=None,
             indexer=None, nextn=0, ff=0, experts=0, used=0, ff_exp=0)
    p |= own
    p.setdefault("bias", p["gating"] != 1)
    return p


def yarn(factor, log_mul=0.1, fast=None, slow=None, original=4096):
    return dict(factor=float(factor), log_mul=log_mul, fast=fast, slow=slow, original=original)


V2, V3 = yarn(40, 0.0707), yarn(40)

PRESETS = {
    "tiny": preset(embd=256, layers=27, heads=8, ff=512, experts=8, used=2, ff_exp=256, vocab=2048, gating=1, norm=False, yarn=V2,
                   pre="deepseek-llm", ctx=16384),
    "tiny-v3": preset(embd=256, layers=4, heads=8, q_lora=256, ff=512, experts=16, used=4, ff_exp=256, vocab=2048, scale=2.5, yarn=V3,
                      groups=4, groups_used=2, pre="deepseek-v3", ctx=16384),
    # DeepSeek-V2-Lite, V2, V3
    "lite": preset(embd=2048, layers=27, heads=16, ff=10944, experts=64, used=6, shared=2, ff_exp=1408, vocab=102400, gating=1,
                   norm=False, yarn=V2, pre="deepseek-llm", ctx=163840),
    "v2": preset(embd=5120, layers=60, heads=128, q_lora=1536, ff=12288, experts=160, used=6, shared=2, ff_exp=1536, vocab=102400,
                 gating=1, scale=16.0, norm=False, groups=8, groups_used=3, yarn=V2, pre="deepseek-llm", ctx=163840),
    "v3": preset(embd=7168, layers=61, dense=3, heads=128, q_lora=1536, ff=18432, experts=256, used=8, ff_exp=2048, vocab=129280,
                 scale=2.5, groups=8, groups_used=4, yarn=V3, pre="deepseek-v3", ctx=163840),
    # Kimi-K2-Instruct; -Thinking and K2.5 have a factor of 64 and twice the context.
    "kimi-k2": preset(embd=7168, layers=61, heads=64, q_lora=1536, ff=18432, experts=384, used=8, ff_exp=2048, vocab=163840,
                      scale=2.827, groups=1, groups_used=1, base=50000.0, yarn=yarn(32, 0.1, 1.0, 1.0), pre="kimi-k2", ctx=131072),
    "moonlight": preset(embd=2048, layers=27, heads=16, ff=11264, experts=64, used=6, shared=2, ff_exp=1408, vocab=163840,
                        scale=2.446, groups=1, groups_used=1, base=50000.0, eps=1e-5, pre="kimi-k2", ctx=8192),
    # GLM-4.7-Flash as its first converter wrote it: no key of gating, and the layer of prediction.
    "glm-4.7-flash": preset(embd=2048, layers=47, heads=20, q_lora=768, nope=192, v=256, ff=10240, experts=64, used=4, ff_exp=1536,
                            vocab=154880, gating=0, scale=1.8, groups=1, groups_used=1, base=1e6, eps=1e-5, nextn=1, pre="glm4",
                            ctx=202752),
    "gigachat3": preset(embd=1536, layers=26, heads=32, v=192, ff=8960, experts=64, used=4, ff_exp=1280, vocab=128256, groups=1,
                        groups_used=1, base=100000.0, pre="gigachat", ctx=262144),
    # Dense; converters write the keys of experts all the same.
    "youtu": preset(embd=2048, layers=32, dense=32, heads=16, q_lora=1536, ff=6144, ff_exp=6144, shared=0, vocab=128256, base=1.6e6,
                    tied=True, pre="youtu", ctx=131072),
    "minicpm3": preset(arch="minicpm3", embd=2560, layers=62, dense=62, heads=40, q_lora=768, kv_lora=256, nope=64, rope=32, v=64,
                       ff=6400, vocab=73448, eps=1e-5, tied=True, bare=True, factors=True, pre="llama-bpe", ctx=32768),
    "mistral-large-3": preset(embd=7168, layers=61, dense=3, heads=128, q_lora=1536, ff=16384, experts=128, used=4, ff_exp=4096,
                              vocab=131072, gating=1, groups=1, groups_used=1, yarn=yarn(36, original=8192), temperature=(0.1, 8192),
                              pre="tekken", ctx=294912),
    "mistral-small-4": preset(arch="mistral4", embd=4096, layers=36, dense=0, heads=32, q_lora=1024, kv_lora=256, nope=64, ff=12288,
                              experts=128, used=4, ff_exp=2048, vocab=131072, gating=1, groups=1, groups_used=1,
                              yarn=yarn(128, original=8192), temperature=(0.1, 8192), pre="tekken", ctx=1048576),
    "deepseek-v3.2": preset(arch="deepseek32", embd=7168, layers=61, dense=3, heads=128, q_lora=1536, ff=18432, experts=256, used=8,
                            ff_exp=2048, vocab=129280, scale=2.5, groups=8, groups_used=4, yarn=V3, indexer=(64, 128, 2048, 4),
                            nextn=1, pre="deepseek-v3", ctx=163840),
    "glm-5": preset(arch="glm-dsa", embd=6144, layers=78, dense=3, heads=64, q_lora=2048, nope=192, v=256, ff=12288, experts=256, used=8,
                    ff_exp=2048, vocab=154880, scale=2.5, groups=1, groups_used=1, base=1e6, eps=1e-5, indexer=(32, 128, 2048, 4),
                    nextn=1, pre="glm4", ctx=202752),
    # Indexers in one of four layers, and in the first two.
    "glm-5.2": preset(arch="glm-dsa", embd=6144, layers=78, dense=3, heads=64, q_lora=2048, nope=192, v=256, ff=12288, experts=256,
                      used=8, ff_exp=2048, vocab=154880, scale=2.5, groups=1, groups_used=1, base=8e6, eps=1e-5,
                      indexer=(32, 128, 2048, 1), nextn=1, pre="glm4", ctx=1048576),
}


BEFORE, AFTER = ("attn_norm", "ffn_norm"), ("post_attention_norm", "post_ffw_norm")
GLM_NORMS = ("attn_norm", "post_attention_norm")


def grouped(arch, embd, layers, heads, kv_heads, vocab, ctx, **own):
    p = dict(arch=arch, embd=embd, layers=layers, heads=heads, kv_heads=kv_heads, head=embd // heads, vocab=vocab, ctx=ctx, dense=layers,
             ff=0, experts=0, used=0, shared=0, ff_exp=0, gating=0, bias=False, scale=None, norm=None, groups=0, groups_used=0,
             base=1e6, eps=1e-6, tied=False, nextn=0, rotated=None, qkv_bias=False, head_norm=None, norms=BEFORE, fused=False,
             fused_up=False, shared_gate=False, step=1, biased=False, sinks=False, keys=(), indexer=None, pre="qwen2", value=None,
             windows=None, local_heads=None, local_kv_heads=None, gate=False, shared_length=None, factors=0)
    assert set(own) <= set(p), own
    return p | own


def of_layer(p, name, i):
    """heads or kv_heads of layer i."""
    return p[f"local_{name}"] or p[name] if p["windows"] and p["windows"](i) else p[name]


def gpt_oss(layers, experts):
    return grouped("gpt-oss", 2880, layers, 64, 8, 201088, 131072, head=64, dense=0, ff=2880, experts=experts, used=4, ff_exp=2880,
                   base=150000.0, eps=1e-5, qkv_bias=True, biased=True, sinks=True, norms=GLM_NORMS, pre="gpt-4o",
                   keys=(("attention.sliding_window", "u32", 128), ("rope.scaling.type", "str", "yarn"),
                         ("rope.scaling.factor", "f32", 32.0), ("rope.scaling.original_context_length", "u32", 4096)))


def gemma3(embd, layers, heads, kv_heads, head, ff, window):
    return grouped("gemma3", embd, layers, heads, kv_heads, 262208, 131072, head=head, ff=ff, head_norm="heads", norms=BEFORE + AFTER,
                   tied=True, pre="default", keys=(("attention.sliding_window", "u32", window), ("rope.scaling.type", "str", "linear"),
                                                   ("rope.scaling.factor", "f32", 8.0)))


def granite(scores, logits):
    return (("attention.scale", "f32", scores), ("embedding_scale", "f32", 12.0), ("residual_scale", "f32", 0.22),
            ("logit_scale", "f32", logits))


PRESETS |= {
    "qwen2.5-7b": grouped("qwen2", 3584, 28, 28, 4, 152064, 32768, ff=18944, qkv_bias=True),
    "qwen3-4b": grouped("qwen3", 2560, 36, 32, 8, 151936, 40960, head=128, ff=9728, head_norm="heads", tied=True),
    "qwen3-235b-a22b": grouped("qwen3moe", 4096, 94, 64, 4, 151936, 40960, head=128, head_norm="heads", dense=0, experts=128, used=8,
                               ff_exp=1536, ff=12288),
    "qwen2-57b-a14b": grouped("qwen2moe", 3584, 28, 28, 4, 151936, 32768, dense=0, experts=64, used=8, ff_exp=2560, ff=18944,
                              qkv_bias=True, shared=8, shared_gate=True),
    "mixtral-8x7b": grouped("llama", 4096, 32, 32, 8, 32000, 32768, dense=0, experts=8, used=2, ff=14336, ff_exp=14336, eps=1e-5,
                            pre="llama-bpe"),
    "glm-4.5": grouped("glm4moe", 5120, 92, 96, 8, 151552, 131072, head=128, rotated=64, qkv_bias=True, head_norm="heads",
                       norms=GLM_NORMS, dense=3, ff=12288, experts=160, used=8, shared=1, ff_exp=1536, gating=2, bias=True, scale=2.5,
                       norm=True, eps=1e-5, nextn=1, pre="glm4"),
    "glm-4.5-air": grouped("glm4moe", 4096, 46, 96, 8, 151552, 131072, head=128, rotated=64, qkv_bias=True, norms=GLM_NORMS, dense=1,
                           ff=10944, experts=128, used=8, shared=1, ff_exp=1408, gating=2, bias=True, scale=1.0, norm=True, eps=1e-5,
                           nextn=1, pre="glm4"),
    "glm-4-32b": grouped("glm4", 6144, 61, 48, 2, 151552, 32768, head=128, rotated=64, norms=BEFORE + AFTER, fused_up=True, ff=23040,
                         base=10000.0, eps=1e-5, pre="glm4"),
    "minimax-m2": grouped("minimax-m2", 3072, 62, 48, 8, 200064, 196608, head=128, rotated=64, head_norm="rows", dense=0, experts=256,
                          used=8, ff_exp=1536, ff=1536, gating=2, bias=True, base=5e6, pre="minimax-m2"),
    "seed-oss-36b": grouped("seed_oss", 5120, 64, 80, 8, 155136, 524288, head=128, qkv_bias=True, norms=GLM_NORMS, ff=27648,
                            base=1e7, pre="seed-coder"),
    "dots.llm1": grouped("dots1", 4096, 62, 32, 32, 152064, 32768, head=128, head_norm="heads", dense=1, ff=10944, experts=128, used=6,
                         shared=2, ff_exp=1408, gating=2, bias=True, scale=2.5, norm=True, base=1e7, eps=1e-5),
    "hunyuan-a13b": grouped("hunyuan-moe", 4096, 32, 32, 8, 128167, 262144, head=128, head_norm="heads", dense=0, experts=64, used=8,
                            shared=1, ff=3072, ff_exp=3072, base=11158839.9251, eps=1e-5, tied=True, pre="hunyuan"),
    "ling-flash-2": grouped("bailingmoe2", 4096, 32, 32, 4, 157184, 131072, head=128, rotated=64, head_norm="heads", fused=True,
                            dense=1, ff=9216, experts=256, used=8, shared=1, ff_exp=1024, gating=2, bias=True, scale=2.5, norm=True,
                            groups=8, groups_used=4, base=600000.0, pre="bailingmoe2"),
    "ernie-4.5-21b": grouped("ernie4_5-moe", 2560, 28, 20, 4, 103424, 131072, head=128, dense=1, ff=12288, experts=64, used=6, shared=2,
                             ff_exp=1536, bias=True, base=500000.0, eps=1e-5, tied=True, keys=(("interleave_moe_layer_step", "u32", 1),)),
    "smollm3-3b": grouped("smollm3", 2048, 36, 16, 4, 128256, 65536, ff=11008, base=5e6, tied=True, pre="smaug-bpe"),
    "olmo2-7b": grouped("olmo2", 4096, 32, 32, 32, 100352, 4096, ff=11008, head_norm="rows", norms=AFTER, base=500000.0, pre="dbrx"),
    "exaone-4-1.2b": grouped("exaone4", 2048, 30, 32, 8, 102400, 65536, ff=4096, head_norm="heads", norms=AFTER, eps=1e-5, tied=True,
                             pre="exaone4"),
    "gpt-oss-20b": gpt_oss(24, 32),
    "gpt-oss-120b": gpt_oss(36, 128),
    "gemma-3-4b": gemma3(2560, 34, 8, 4, 256, 10240, 1024),
    "gemma-3-27b": gemma3(5376, 62, 32, 16, 128, 21504, 1024),
    "granite-3.3-8b": grouped("granite", 4096, 40, 32, 8, 49159, 131072, ff=12800, base=1e7, eps=1e-5, tied=True, pre="refact",
                              keys=granite(1 / 128, 16.0)),
    "granite-3.1-3b-a800m": grouped("granitemoe", 1536, 32, 24, 8, 49155, 131072, dense=0, experts=40, used=8, ff=512, ff_exp=512,
                                    base=1e7, tied=True, pre="refact", keys=granite(1 / 64, 6.0)),
    "ministral-3-8b": grouped("mistral3", 4096, 34, 32, 8, 131072, 262144, ff=14336, eps=1e-5, rotated=128, pre="tekken", keys=(
        ("rope.scaling.type", "str", "yarn"), ("rope.scaling.factor", "f32", 16.0), ("rope.scaling.yarn_beta_fast", "f32", 32.0),
        ("rope.scaling.yarn_beta_slow", "f32", 1.0), ("rope.scaling.yarn_log_multiplier", "f32", 1.0),
        ("rope.scaling.original_context_length", "u32", 16384), ("attention.temperature_scale", "f32", 0.1))),
    "hunyuan-7b": grouped("hunyuan-dense", 4096, 32, 32, 8, 128167, 262144, head=128, head_norm="heads", ff=14336, base=11158839.9251,
                          eps=1e-5, tied=True, pre="hunyuan-dense"),
    "ernie-4.5-0.3b": grouped("ernie4_5", 1024, 18, 16, 2, 103424, 131072, head=128, ff=3072, base=500000.0, eps=1e-5, tied=True),
    "glm-4-9b": grouped("chatglm", 4096, 40, 32, 2, 151552, 131072, head=128, rotated=64, fused=True, fused_up=True, qkv_bias=True,
                        ff=13696, base=5e6, eps=1.5625e-7, pre="chatglm-bpe"),
    "internlm2.5-7b": grouped("internlm2", 4096, 32, 32, 8, 92544, 32768, ff=14336, eps=1e-5, rotated=128, pre="default"),
    "minicpm-2b": grouped("minicpm", 2304, 40, 36, 36, 122753, 4096, ff=5760, base=10000.0, eps=1e-5, tied=True, pre="default"),
    "exaone-4-32b": grouped("exaone4", 5120, 64, 40, 8, 102400, 131072, ff=27392, head_norm="heads", norms=AFTER, eps=1e-5,
                            pre="exaone4", windows=lambda i: i % 4 != 3, keys=(("attention.sliding_window", "u32", 4096),)),
    # Layers 0, 5, 11, 17, ... see all tokens, and those of prediction do not.
    "mimo-v2-flash": grouped("mimo2", 4096, 48, 64, 4, 152576, 262144, head=192, value=128, rotated=64, dense=1, ff=16384, experts=256,
                             used=8, ff_exp=2048, gating=2, bias=True, base=5e6, eps=1e-5, nextn=3, sinks=True, local_kv_heads=8,
                             windows=lambda i: 0 < i and (i >= 48 or (i + 1) % 6 != 0),
                             keys=(("attention.sliding_window", "u32", 128), ("rope.freq_base_swa", "f32", 10000.0),
                                   ("attention.value_scale", "f32", 0.707))),
    # Layers 0, 4, 8, ... see all tokens.
    "step-3.5-flash": grouped("step35", 4096, 45, 64, 8, 128896, 262144, head=128, head_norm="heads", dense=3, ff=11264, experts=288, used=8,
                              shared=1, shared_length=1280, ff_exp=1280, gating=2, bias=True, scale=3.0, norm=True, base=5e6, eps=1e-5,
                              nextn=3, gate=True, factors=64, rotated=128, local_heads=96, windows=lambda i: i % 4 != 0,
                              pre="deepseek-v3", keys=(
                                  ("attention.sliding_window", "u32", 512), ("rope.freq_base_swa", "f32", 10000.0),
                                  ("moe_every_n_layers", "u32", 1),
                                  ("swiglu_clamp_exp", "arr:f32", [7.0 if i in (43, 44) else 0.0 for i in range(48)]),
                                  ("swiglu_clamp_shexp", "arr:f32", [16.0 if i == 44 else 0.0 for i in range(48)]))),
    "phi-4": grouped("phi3", 5120, 40, 40, 10, 100352, 16384, ff=17920, fused=True, fused_up=True, base=250000.0, eps=1e-5, pre="dbrx"),
}


def has_indexer(p, layer):
    return bool(p["indexer"]) and (p["indexer"][3] == 4 or layer <= 1 or layer % 4 == 2)
