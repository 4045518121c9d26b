#!/usr/bin/env python3
"""Record logits of small random models, computed by the public `transformers` implementations.

Writes NAME.seeded.gguf (the model, named and laid out as public converters do, with seeds for weights: seeded.py) and
NAME.RUN.golden.gguf (tokens, logits, margins) for the cases of cases.py. The models compute in f32 on exactly the values
that the files describe: matrices are rounded to f16 before the first forward pass.

    record_models.py --out tests/goldens [CASE ...]
"""
import argparse
import importlib
import os

import gguf
import numpy as np
import torch
import transformers

from cases import CASES
from families import FAMILIES
from write_model import write_seeded_model

TOLERANCE = 1e-3          # of the largest logit, for an f32 implementation
LEAST_ROUTER_MARGIN = 4e-3
LOGIT_POSITIONS = 48
HIDDEN_POSITIONS = 8


class WithOutput(torch.nn.Module):
    """A model of text and an output matrix."""

    def __init__(self, text, config):
        super().__init__()
        self.config, self.model = config, text(config)
        self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, tokens, **options):
        result = self.model(tokens, **options)
        result.logits = self.lm_head(result.last_hidden_state)
        return result


def make_model(case):
    family = FAMILIES[case["family"]]
    name = family.transformers
    config_type = getattr(transformers, (family.config or name) + "Config")
    options = dict(pad_token_id=None) | dict(case["config"], bos_token_id=0, eos_token_id=1)
    rope = options["rope_parameters"]
    options["max_position_embeddings"] = int(rope.get("factor", 1) * rope.get("original_max_position_embeddings", 8192))
    if FAMILIES[case["family"]].latent:
        options["num_key_value_heads"] = options["num_attention_heads"]
    config = config_type(**options)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    if family.text:
        config.allow_global_per_layer_attribute_access = True  # heads of layers without a window
        module = importlib.import_module(config_type.__module__.replace(".configuration_", ".modeling_"))
        return WithOutput(getattr(module, family.text), config).eval()
    return getattr(transformers, name + "ForCausalLM")(config).eval()


def spread_of(name, shape, gains, tied):
    """Centre and standard deviation of a weight: they keep every block alive, with unit gain but for the gains that the case asks for."""
    if name.endswith("e_score_correction_bias"):
        return 0.0, gains["bias"]
    if name.endswith(("_proj.bias", "_proj_bias", "router.bias")):
        return 0.0, gains["projection_bias"]
    if name.endswith("sinks"):
        return 0.0, 1.0
    if len(shape) == 1:
        return 1.0, 0.1
    gain = 1.0
    if name.endswith("embed_tokens.weight"):
        if not tied:
            return 0.0, 1.0
        gain = gains["output"]
    elif name.endswith("lm_head.weight"):
        gain = gains["output"]
    elif name.endswith(("mlp.gate.weight", "mlp.gate.wg.weight", "shared_expert_gate.weight", "router.weight")):
        gain = gains["router"]
    elif name.endswith(("q_proj.weight", "q_b_proj.weight")):
        gain = gains["q"]
    elif name.endswith("o_proj.weight"):
        gain = gains["o"]
    elif name.endswith("experts.gate_up_proj"):
        gain = gains["expert_gate_up"]
    elif name.endswith("experts.down_proj"):
        gain = gains["expert_down"]
    elif name.endswith("down_proj.weight"):
        gain = gains["down"]
    return 0.0, gain / np.sqrt(shape[-1])


def write_and_fill(path, name, model, case):
    """The model's file, and its weights in the model."""
    gains = dict(q=2.0, router=2.0, bias=0.1, down=1.5, expert_gate_up=1.0, expert_down=1.5, o=1.5, output=3.0, projection_bias=0.5) | case["gains"]
    tied = model.config.tie_word_embeddings
    tensors = {key.removeprefix("model."): tensor for key, tensor in model.state_dict().items()}  # of the model's own memory
    if tied:
        tensors.pop("lm_head.weight", None)
    weights = write_seeded_model(path, name, model.config, case, {key: tuple(tensor.shape) for key, tensor in tensors.items()},
                                 lambda key, shape: spread_of(key, shape, gains, tied))
    for key, tensor in tensors.items():
        shift = 1 if FAMILIES[case["family"]].shifted and key.endswith("norm.weight") else 0
        tensor.copy_(torch.from_numpy(weights[key]) - shift)


class RouterWatch:
    """Keeps the router logits of the last forward pass, one entry a layer that has a router."""

    def __init__(self, model):
        self.logits, self.biases = {}, {}
        for name, module in model.named_modules():
            if name.endswith(("mlp.gate", "mlp.router", "block_sparse_moe.router")):
                biases = [b for n, b in model.state_dict().items()
                          if n.startswith(name.removesuffix("gate")) and n.endswith("e_score_correction_bias")]
                self.biases[name] = biases[0].reshape(-1) if biases else None
                module.register_forward_hook(lambda _m, _i, out, name=name: self.logits.__setitem__(name, out[0].detach()))

    def selection(self, config, family):
        """(smallest margin of each position over layers, selected experts by layer)."""
        margins, selected = [], []
        k = config.num_experts_per_tok if self.logits else 0
        for name, logits in self.logits.items():
            sigmoid = FAMILIES[family].sigmoid
            scores = (logits.sigmoid() if sigmoid else logits.softmax(-1)).double()
            if self.biases[name] is not None:
                scores = scores + self.biases[name].double()
            groups = getattr(config, "n_group", None) or 1
            if family == "v2" and config.topk_method == "greedy":
                groups = 1
            if groups > 1:
                used = config.topk_group
                by_group = scores.view(len(scores), groups, -1)
                best = by_group.topk(2, -1)[0].sum(-1) if sigmoid else by_group.max(-1)[0]
                ranked = best.sort(-1, descending=True)
                margins.append(ranked[0][:, used - 1] - ranked[0][:, used])
                keep = torch.zeros_like(best).scatter_(1, ranked[1][:, :used], 1).bool()
                scores = by_group.masked_fill(~keep[:, :, None], float("-inf")).view(len(scores), -1)
            ranked = scores.sort(-1, descending=True)
            margins.append(ranked[0][:, k - 1] - ranked[0][:, k])  # inf where no other is left
            selected.append(ranked[1][:, :k].sort(-1)[0])
        return (torch.stack(margins).min(0)[0] if margins else None), selected


def choose_tokens(model, watch, family, count, seed):
    """Random tokens after BOS, redrawn where a router could tip.

    Another implementation may select another expert where two scores nearly tie, and attention carries that to all
    later positions. Redrawing the token at such a position keeps the whole sequence comparable, not only the position.
    """
    config = model.config
    rng = np.random.default_rng(seed + 1000)
    tokens = np.concatenate([[0], rng.integers(4, config.vocab_size, count - 1)])
    # Caches of layers with a window are not cut.
    cache = None if getattr(config, "sliding_window", None) else transformers.DynamicCache(config=config)
    at, redrawn = 0, 0
    while at < count:
        step = min(32, count - at)
        with torch.no_grad():
            first = 0 if cache is None else at
            model(torch.tensor(tokens[None, first:at + step]), past_key_values=cache, use_cache=cache is not None)
        margin, _ = watch.selection(config, family)
        margin = None if margin is None else margin[-step:]
        good = step
        if margin is not None:
            low = (margin < LEAST_ROUTER_MARGIN).nonzero()
            low = [int(i) for i in low.flatten() if at + int(i) > 0]  # BOS stays
            if low:
                good = low[0]
        if good < step:
            if cache is not None:
                cache.crop(good - step)
            tokens[at + good] = rng.integers(4, config.vocab_size)
            redrawn += 1
        at += good
    return tokens, redrawn


def logit_positions(count, most):
    if count <= 4096:
        return np.unique(np.linspace(0, count - 1, most).round().astype(np.int32))
    spread = [np.linspace(0, 4080, 24), np.arange(4088, 4104), np.linspace(4106, count - 1, 24)]
    return np.unique(np.concatenate(spread).round().astype(np.int32))


def record(name, run, model, watch, case, out):
    config, family = model.config, case["family"]
    count = case["runs"][run]
    seed = case["seed"] * 10 + sorted(case["runs"]).index(run)
    tokens, redrawn = choose_tokens(model, watch, family, count, seed)
    with torch.no_grad():
        result = model(torch.tensor(tokens[None]), use_cache=False, output_hidden_states=True)
    logits = result.logits[0].float()
    assert torch.isfinite(logits).all()
    top = logits.topk(2, -1)
    margin, selected = watch.selection(config, family)
    at = logit_positions(count, case.get("positions", LOGIT_POSITIONS))
    hidden_at = at[np.linspace(0, len(at) - 1, HIDDEN_POSITIONS).round().astype(int)]
    hidden = torch.stack([h[0] for h in result.hidden_states], 1)[hidden_at]
    largest = float(logits[at].abs().max())
    top_margin = (top[0][:, 0] - top[0][:, 1]).numpy()

    path = os.path.join(out, f"{name}.{run}.golden.gguf")
    w = gguf.GGUFWriter(path, "tessera-golden")
    w.add_string("golden.model", f"{name}.gguf")
    w.add_string("golden.made_with", f"transformers {transformers.__version__}, torch {torch.__version__}, "
                                     f"numpy {np.__version__}, gguf {package_version('gguf')}")
    w.add_string("golden.class", type(model).__name__)
    w.add_uint32("golden.seed", case["seed"])
    w.add_uint32("golden.token_seed", seed + 1000)
    w.add_uint32("golden.tokens_redrawn", redrawn)
    w.add_float32("golden.tolerance", TOLERANCE)
    w.add_float32("golden.max_abs_logit", largest)
    w.add_tensor("tokens", tokens.astype(np.int32))
    w.add_tensor("positions", at.astype(np.int32))
    w.add_tensor("logits", logits[at].numpy())
    w.add_tensor("top1", top[1][:, 0].numpy().astype(np.int32))
    w.add_tensor("margin", top_margin)
    if margin is not None:
        w.add_float32("golden.least_router_margin", float(margin.min()))
        w.add_tensor("router_margin", margin.float().numpy())
        w.add_tensor("experts", torch.stack(selected, 1)[at].numpy().astype(np.int32))
    w.add_tensor("hidden_positions", hidden_at.astype(np.int32))
    w.add_tensor("hidden", hidden.numpy())
    close(w)
    sure = float((top_margin > 2 * TOLERANCE * largest).mean())
    sure2 = float((top_margin > 2e-2 * largest).mean())
    router = "none" if margin is None else f"min {float(margin.min()):.1e}, under 1e-3: {int((margin < 1e-3).sum())}"
    print(f"{name}.{run}: {count} tokens, {redrawn} redrawn, largest logit {largest:.2f}, "
          f"logit spread {float(logits.std()):.2f}, distinct top-1 {len(set(top[1][:, 0].tolist()))}, "
          f"top-1 sure at 1e-3: {sure:.1%}, at 1e-2: {sure2:.1%}, router margin {router}, "
          f"{os.path.getsize(path)} bytes")


def package_version(name):
    from importlib.metadata import version
    return version(name)


def close(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True, help="folder for the files")
    ap.add_argument("cases", nargs="*", metavar="CASE", help="of cases.py; all if none is named")
    o = ap.parse_args()
    unknown = set(o.cases) - set(CASES)
    if unknown:
        ap.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    torch.manual_seed(0)
    for name in o.cases or CASES:
        case = CASES[name]
        model = make_model(case)
        path = os.path.join(o.out, f"{name}.seeded.gguf")
        write_and_fill(path, name, model, case)
        print(f"{name}: {sum(p.numel() for p in model.parameters())} weights, {os.path.getsize(path)} bytes")
        watch = RouterWatch(model)
        for run in case["runs"]:
            record(name, run, model, watch, case, o.out)


if __name__ == "__main__":
    main()
