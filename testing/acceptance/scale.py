"""How much is done: on a card; on emulated cards in full; quickly."""

import dataclasses

from .random_model import LITE, SMALL

PROMPTS = ("Count from 1 to 10 in French.", "What is the capital of France?")
LOWERINGS = ("0", "1", "2", "3")
CACHES = ("f16", "bf16", "q8_0", "q4_0")
TINY = dict(SMALL, layers=2, heads=2, vocabulary=512)


@dataclasses.dataclass(frozen=True)
class RandomModel:
    heads: int
    kind: str
    caches: tuple
    changes: dict = dataclasses.field(default_factory=dict)

    @property
    def shape(self):
        return dict(SMALL, heads=self.heads, **self.changes)


@dataclasses.dataclass(frozen=True)
class Scale:
    minutes: float
    wrapper_seconds: int       # that a plugin's wrappers may take, and rates
    rates_seconds: int
    # plugin-test: kernels, if not all; parts of the names of cases, of kernels of which not all are run; seconds that a kernel may take, and one case.
    kernels: tuple
    cases: dict
    kernel_seconds: int
    case_seconds: int
    small_speed: bool          # measure_card with few rows and short contexts
    prompts: tuple
    answer_tokens: int
    # Comparisons with the CPU: models, lowerings; tokens of a prompt, and of a text that is read token by token; both with each cache, or half of
    # the pairs in turn.
    bundled: bool
    goldens: tuple             # of tests/goldens, by name; empty: all
    random_models: tuple
    lowerings: tuple
    prompt_tokens: int
    single_tokens: int
    both: bool
    rig_cases: tuple           # of lowering and cache
    # Mixed steps over the mixed rig (0: none), with the bundled model or a tiny one.
    rig_steps: int
    tiny_steps: bool
    # The Lite-shaped model: whether one of full size is only written and planned, shape and type of the one that runs, tokens.
    lite_written: bool
    lite: tuple
    lite_depth: int
    lite_rows: tuple           # of a step of a prompt; a run for each
    lite_generation: int
    lite_steps: int
    lite_context: int
    step_rows: int
    step_sequences: int


CARD = Scale(
    minutes=4, wrapper_seconds=60, rates_seconds=25, kernels=(), cases={}, kernel_seconds=75, case_seconds=10, small_speed=False, prompts=PROMPTS,
    answer_tokens=60, bundled=True, goldens=(),
    random_models=(RandomModel(16, "q4_0", CACHES), RandomModel(1, "q8_0", ("f16",)), RandomModel(128, "f16", ("f16", "q8_0"))),
    lowerings=LOWERINGS, prompt_tokens=96, single_tokens=24, both=True, rig_cases=(("0", "f16"), ("1", "q8_0"), ("3", "f16")), rig_steps=1000,
    tiny_steps=False, lite_written=False, lite=(LITE, "q4_0"), lite_depth=61440, lite_rows=(512, 2048), lite_generation=32, lite_steps=1000,
    lite_context=32768, step_rows=64, step_sequences=4)

# Every part, every kernel, lowering, cache and number of heads; tokens and layers are what takes the time, and there are few of them.
# Flash and tiled attention are one code, but for what they claim: a part of the cases is enough for the second.
FEW_LAYERS = {"layers": 2, "vocabulary": 512}
EMULATED = dataclasses.replace(
    CARD, minutes=600, wrapper_seconds=900, rates_seconds=900, cases={"tiled_attention.cuda": ("prefix", "plain 64 cache f16", "projected 64 cache f16 weights f16")},
    kernel_seconds=3600, case_seconds=600, small_speed=True, answer_tokens=12,
    random_models=tuple(dataclasses.replace(model, changes=FEW_LAYERS) for model in CARD.random_models), prompt_tokens=8, single_tokens=6, both=False,
    tiny_steps=True, lite_written=True, lite=(dict(LITE, layers=2, vocabulary=1024), "q4_0"), lite_depth=8, lite_rows=(4, 8), lite_generation=2,
    lite_steps=3, lite_context=256, step_rows=4, step_sequences=2)

QUICK = dataclasses.replace(
    EMULATED, kernels=("rms_norm.cuda", "weighted_sum.cuda", "gated_ffn.cuda"), cases={"gated_ffn.cuda": ("q8_0",)}, case_seconds=300,
    prompts=PROMPTS[:1], answer_tokens=3, bundled=False, goldens=("gpt-oss",), random_models=(RandomModel(4, "q8_0", ("f16",), FEW_LAYERS),),
    lowerings=("0", "1", "3"), prompt_tokens=8, single_tokens=8, rig_cases=(("1", "f16"),), rig_steps=6, lite_written=False, lite=(TINY, "q8_0"),
    lite_depth=16, lite_rows=(8, 16), lite_generation=1, lite_steps=6, step_rows=8)
