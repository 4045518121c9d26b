"""Only a tie of experts explains a difference between two runs: routing_ties_test.py TOOLS MAKE_GGUF."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

TOOLS, MAKE_GGUF = map(pathlib.Path, sys.argv[1:3])
sys.path.insert(0, str(TOOLS))
import exact_model  # noqa: E402
import routing_ties  # noqa: E402

LIMITS = (0.000003, 0.000003)
TOKENS = 32


class RoutingTies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "model.gguf"
            shape = "--preset tiny-v3 --type f16 --layers 3 --dense 1 --heads 1 --vocab 320 --experts 8 --used 2 --groups 2 --groups-used 1 --seed 7"
            subprocess.run([sys.executable, MAKE_GGUF, *shape.split(), "-o", file], check=True, capture_output=True)
            cls.model = exact_model.ExactModel(file, cache="f16")
        cls.tokens = numpy.random.default_rng(1).integers(4, 260, TOKENS)
        cls.tokens[0] = 0
        cls.exact, choices = cls.model.predict(cls.tokens[:-1])
        # In the last layer a token's experts change what follows it and nothing else.
        cls.last = sorted((gap, c.token, experts) for c in choices if c.layer == 2 and c.token >= TOKENS // 2 for gap, experts in c.others)
        cls.all = sorted((gap, c.layer, c.token, experts) for c in choices for gap, experts in c.others)

    def run_with(self, forced):
        return self.model.predict(self.tokens[:-1], forced)[0][TOKENS // 2 :]

    def explain(self, run):
        return routing_ties.explain(self.model, self.tokens, {"one": self.exact[TOKENS // 2 :], "other": run}, LIMITS)

    def with_gap(self, gap):
        """Explanations are sought among ties closer than this."""
        self.addCleanup(setattr, routing_ties, "GAP", routing_ties.GAP)
        routing_ties.GAP = gap

    def test_a_tie_is_found_and_named(self):
        gap, token, experts = self.last[0]
        self.with_gap(gap * 1.01)
        ties = self.explain(self.run_with({(2, token): experts}))
        self.assertEqual(ties, f"other takes experts {' '.join(map(str, experts))} of token {token} in layer 2, {gap:.1e} behind")

    def test_a_tie_before_the_scored_places_is_found(self):
        gap, layer, token, experts = next(tie for tie in self.all if tie[1] == 1 and tie[2] < TOKENS // 2)
        self.with_gap(gap * 1.01)
        run = self.run_with({(layer, token): experts})
        self.assertGreater(exact_model.divergence(run, self.exact[TOKENS // 2 :]).mean(), LIMITS[0])
        self.assertIn(f"token {token} in layer 1", self.explain(run))

    def test_experts_that_are_not_tied_are_a_mistake(self):
        gap, token, experts = self.last[4]
        self.with_gap(gap * 0.99)
        self.assertIsNone(self.explain(self.run_with({(2, token): experts})))

    def test_a_mistake_at_a_tied_token_is_one(self):
        gap, token, experts = self.last[0]
        self.with_gap(gap * 1.01)
        run = self.run_with({(2, token): experts})
        run[token - TOKENS // 2] += numpy.linspace(-0.03, 0.03, run.shape[1])
        self.assertIsNone(self.explain(run))

    def test_a_mistake_beside_a_tie_is_one(self):
        gap, token, experts = self.last[0]
        self.with_gap(gap * 1.01)
        run = self.run_with({(2, token): experts})
        run[(token + 1) % len(run)] += numpy.linspace(-0.03, 0.03, run.shape[1])
        self.assertIsNone(self.explain(run))

    def test_runs_without_ties_have_nothing_to_explain(self):
        self.assertIsNone(self.explain(self.exact[TOKENS // 2 :] + 1e-9))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
