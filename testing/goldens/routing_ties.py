"""Whether two runs of a model differ only because a token's experts were all but tied.

Rounding moves the scores that choose experts, and where two of them are closer than it moves them, two right computations choose different
experts. A larger limit for the difference would hide mistakes as well. Instead each run is held against the model in double precision
(exact_model.py) in which nothing but such ties may be decided the other way, and has to agree with that as closely as runs agree otherwise.
"""

import struct

import numpy

from exact_model import divergence

# Between two scores. The attention of CPU plugins in 16-bit integers, which more rows than 16 take with caches in f16 and bf16, moved each of two by
# up to 0.0004 (bench/results/accuracy.md).
GAP = 0.001
DECISIONS = 4
# What a single token may diverge by, over what all may on average.
OF_A_TOKEN = 10


def saved_run(path):
    """Tokens of the first chunk, and log probabilities at its scored places, of a file of `tessera perplexity --kl-divergence-base`."""
    data = path.read_bytes()
    context, vocabulary, _ = struct.unpack_from("<3I", data, 8)
    tokens = numpy.frombuffer(data, "<i4", context, 20)
    place = 8 + (vocabulary + 1) // 2 * 4
    rows = []
    for at in range(20 + 4 * context, len(data), place):
        step, least = struct.unpack_from("<2f", data, at)
        rows.append(numpy.frombuffer(data, "<u2", vocabulary, at + 8) * float(step) + least)
    return tokens, numpy.array(rows)


def decisions(model, tokens, run, limits):
    """Ties (gap, layer, token, experts) which, decided the other way, make the model agree with a run; None if none do.

    run: log probabilities at the last places of the tokens, the very last without them; limits: of the divergence's mean and median.
    """
    first = len(tokens) - 1 - len(run)
    forced, taken = {}, []

    def apart(forced):
        exact, choices = model.predict(tokens[:-1], forced)
        return divergence(run, exact[first:]), choices

    found, choices = apart(forced)
    while found.mean() > limits[0] or numpy.median(found) > limits[1] or found.max() > OF_A_TOKEN * limits[0]:
        worst = first + int(found.argmax())
        ties = [(gap, c.layer, c.token, experts) for c in choices for gap, experts in c.others
                if gap < GAP and c.token <= worst and (c.layer, c.token) not in forced]
        tried = [(apart({**forced, (layer, token): experts}), gap, layer, token, experts) for gap, layer, token, experts in ties]
        if not tried or len(taken) == DECISIONS:
            return None
        (better, choices), *tie = min(tried, key=lambda t: t[0][0].mean())
        if better.mean() >= found.mean():
            return None
        found = better
        forced[tie[1], tie[2]] = tie[3]
        taken.append(tuple(tie))
    return taken


def told(taken):
    return ", ".join(f"experts {' '.join(map(str, experts))} of token {token} in layer {layer}, {gap:.1e} behind" for gap, layer, token, experts in taken)


def explain(model, tokens, runs, limits):
    """In words, the ties by which runs (a dictionary by name) differ; None if there is a run that ties do not explain."""
    taken = {name: decisions(model, tokens, run, limits) for name, run in runs.items()}
    if None in taken.values() or not any(taken.values()):
        return None
    return "; ".join(f"{name} takes {told(ties)}" for name, ties in taken.items() if ties)
