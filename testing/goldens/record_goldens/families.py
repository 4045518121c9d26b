"""The families of models that are recorded: all that the tools know of an architecture beside the sizes of cases.py."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    architecture: str          # general.architecture
    transformers: str          # the classes NAMEConfig and NAMEForCausalLM
    pre: str                   # tokenizer.ggml.pre
    special: tuple             # the first four tokens of the vocabulary
    # Rope turns neighbours, so that rows of q and k are written in another order; converters of such write
    # rope.dimension_count, too.
    neighbours: bool = False
    latent: bool = False       # multi-head latent attention
    sigmoid: bool = False      # routers: sigmoids with a bias on selection, groups by their best two



def latent(architecture, transformers, pre, special, sigmoid=True):
    return Family(architecture, transformers, pre, special, latent=True, sigmoid=sigmoid)


DEEPSEEK = ("<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>",
            "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>")
QWEN = ("<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|object_ref_start|>")

GLM = ("<|endoftext|>", "<|user|>", "<|assistant|>", "<|observation|>")
LLAMA3 = ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>")

FAMILIES = {
    "v2": latent("deepseek2", "DeepseekV2", "deepseek-llm", DEEPSEEK, sigmoid=False),
    "v3": latent("deepseek2", "DeepseekV3", "deepseek-v3", DEEPSEEK),
    "kimi-k2": latent("deepseek2", "DeepseekV3", "kimi-k2", ("[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>")),
    "gigachat": latent("deepseek2", "DeepseekV3", "gigachat", ("<unk>", "<s>", "</s>", "<|message_sep|>")),
    "glm-flash": latent("deepseek2", "Glm4MoeLite", "glm4", GLM),
    "youtu": latent("deepseek2", "Youtu", "youtu", LLAMA3),
    "llama": Family("llama", "Llama", "llama-bpe", LLAMA3, neighbours=True),
    "qwen3": Family("qwen3", "Qwen3", "qwen2", QWEN),
    "qwen3moe": Family("qwen3moe", "Qwen3Moe", "qwen2", QWEN),
}
