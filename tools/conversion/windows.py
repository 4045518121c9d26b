"""Which layers attend to a window of tokens, as the classes of `transformers` read it from config.json."""
from conversion.errors import Unsupported

# A window only where use_sliding_window says so, in layers from max_window_layers on.
SWITCHED = {"Qwen2", "Qwen2Moe", "Qwen2_5_VL", "Qwen3", "Qwen3Moe", "Qwen3VL", "Qwen3VLMoe", "SmolLM3"}
EVERY_LAYER = {"Mistral", "Mixtral", "Phi3"}
# Each such layer has none, where the file does not say which.
PERIOD = {"Exaone4": 4, "Gemma3": 6, "GptOss": 2}
UNREAD = {"Llama"}  # the class does not read the key

# Families whose graphs have windows; of those that write no pattern, which layers loaders give one.
COMPUTED = {"llama", "mixtral", "qwen3", "qwen3moe", "phi3", "gemma3", "gpt-oss", "exaone4", "mimo2", "step35"}
IMPLIED = {"phi3": 0, "gemma3": 6, "gpt-oss": 2}


def periodic(layers, period):
    return ["full_attention" if period and (i + 1) % period == 0 else "sliding_attention" for i in range(layers)]


def kinds(config, name):
    """`layer_types` of a dict of the configuration with a window, of the class `name`."""
    layers = config["num_hidden_layers"]
    if config.get("layer_types"):
        return config["layer_types"]
    pattern = config.get("sliding_window_pattern")
    if isinstance(pattern, str) and pattern:  # "LLLG": local, global
        return ["full_attention" if pattern[i % len(pattern)] == "G" else "sliding_attention" for i in range(layers)]
    if isinstance(pattern, int) and pattern > 0 or name in PERIOD:
        return periodic(layers, pattern or PERIOD[name])
    if name in EVERY_LAYER:
        return periodic(layers, 0)
    first = config.get("max_window_layers")
    if first is None:
        raise Unsupported(f"config.json: sliding_window is {config['sliding_window']}, and neither layer_types nor max_window_layers says "
                          "which layers have it")
    return ["sliding_attention" if i >= first else "full_attention" for i in range(layers)]


def complete(config, name):
    """Sets `layer_types`, and no window where no layer has it."""
    if config.get("use_sliding_window", name not in SWITCHED) is False or name in UNREAD:
        config["sliding_window"] = None
    if not config.get("sliding_window"):
        return
    config["layer_types"] = kinds(config, name)
    if "sliding_attention" not in config["layer_types"]:
        config["sliding_window"] = None


def check(config, family):
    """Throws Unsupported for a window that the loaded model would not have."""
    window = getattr(config, "sliding_window", None)
    if window and family not in COMPUTED and window < config.max_position_embeddings:
        raise Unsupported(f"config.json: layers attend to a window of {window} tokens (sliding_window), which is not computed for {family}")


def unimplied(config, family):
    """Whether each layer has a window, where loaders of the family would take other layers; else nothing."""
    if not getattr(config, "sliding_window", None) or family not in IMPLIED:
        return None
    if config.layer_types == periodic(config.num_hidden_layers, IMPLIED[family]):
        return None
    return [kind == "sliding_attention" for kind in config.layer_types]
