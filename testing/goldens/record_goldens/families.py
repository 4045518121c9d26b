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


DEEPSEEK = ("<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>",
            "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>")
QWEN = ("<|endoftext|>", "<|im_end|>", "<|im_start|>", "<|object_ref_start|>")

FAMILIES = {
    "v2": Family("deepseek2", "DeepseekV2", "deepseek-llm", DEEPSEEK),
    "v3": Family("deepseek2", "DeepseekV3", "deepseek-v3", DEEPSEEK),
    "llama": Family("llama", "Llama", "llama-bpe",
                    ("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>"), neighbours=True),
    "qwen3": Family("qwen3", "Qwen3", "qwen2", QWEN),
    "qwen3moe": Family("qwen3moe", "Qwen3Moe", "qwen2", QWEN),
}
