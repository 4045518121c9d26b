"""Shapes of models for make_gguf.py: those of published configurations (config.json), and small ones for tests.

A preset is a dict: `arch`, the sizes (embd, layers, dense, heads, q_lora, kv_lora, nope, rope, v, ff, experts, used, shared,
ff_exp, vocab, ctx), the router (gating: 0 no key, 1 softmax, 2 sigmoid; bias: exp_probs_b; scale, norm, groups, groups_used),
`base` and `yarn` of the rotary embedding, `eps`, `pre` (tokenizer.ggml.pre) and what only some have: `tied` embeddings,
`indexer` (heads, key length, top_k, how many of four layers have one) and `nextn`, further prediction layers.
"""


def preset(**own):
    p = dict(arch="deepseek2", dense=1, q_lora=0, kv_lora=512, nope=128, rope=64, v=128, shared=1, gating=2, scale=1.0, norm=True,
             groups=0, groups_used=0, base=10000.0, eps=1e-6, yarn=None, tied=False, indexer=None, nextn=0, ff=0, experts=0,
             used=0, ff_exp=0)
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


def has_indexer(p, layer):
    return bool(p["indexer"]) and (p["indexer"][3] == 4 or layer <= 1 or layer % 4 == 2)
