"""What tools/gpu_acceptance makes of made-up measurements: acceptance_test.py SOURCE."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

SOURCE = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tools"))

from acceptance import build, kernels, lite, models, report as reports, scale, speeds  # noqa: E402
from acceptance.process import Done  # noqa: E402
from acceptance.report import Report  # noqa: E402

GB = 10**9


class Quiet(unittest.TestCase):
    def setUp(self):
        self.output = io.StringIO()
        redirected = contextlib.redirect_stdout(self.output)
        redirected.__enter__()
        self.addCleanup(redirected.__exit__, None, None, None)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def script(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)
        return path

    def assert_verdict(self, report, failed=(), left_out=(), missed=()):
        for found, expected in ((report.failed, failed), (report.left_out, left_out), (report.missed(), missed)):
            self.assertEqual(len(found), len(expected), found)
            for text, part in zip(found, expected):
                self.assertIn(part, text)


class Verdicts(Quiet):
    def test_what_failed_or_was_missed_comes_before_what_was_left_out(self):
        report = Report(10)
        self.assertEqual((report.status(), report.verdict()), (0, "all passed"))
        report.leave_out("part")
        self.assertEqual(report.status(), 3)
        self.assertIn("incomplete", report.verdict())
        self.assertNotIn("passed", report.verdict())
        report.goal("goal", 0.5, 0.6, None, "")
        self.assertEqual(report.status(), 1)
        self.assertIn("goals MISSED: goal", report.verdict())

    def test_a_met_goal_passes(self):
        report = Report(10)
        report.goal("goal", 0.6, 0.6, 0.9, "")
        self.assertEqual(report.status(), 0)

    def test_goals_of_an_emulated_card_do_not_count(self):
        report = Report(10, emulated=True)
        report.goal("goal", 0.1, 0.6, 0.9, "")
        self.assertEqual(report.status(), 0)
        self.assertIn(f"MISSED ({reports.EMULATED})", "\n".join(report.result()))

    def test_a_command_that_hangs_fails_and_one_without_time_is_left_out(self):
        report = Report(60)
        report.run("hangs", ["sleep", "60"], limit=0.2)
        with report.within(0.2):
            report.run("late", ["sleep", "60"])
        self.assert_verdict(report, failed=["hangs"], left_out=["late"])

    def test_time_that_is_not_used_is_left_to_those_after(self):
        report = Report(100)
        shares = [report.left() for _ in report.in_turn("ab", {"a": 1, "b": 3}.get)]
        self.assertAlmostEqual(shares[0], 25, delta=1)
        self.assertAlmostEqual(shares[1], 100, delta=1)

    def test_shares_of_the_parts_are_a_run_of_nine_and_a_half_minutes(self):
        text = (SOURCE / "tools/gpu_acceptance").read_text()
        shares = json.loads(text.split("PARTS = ")[1].split("\n")[0])
        self.assertLessEqual(sum(shares.values()) + 10, 60 * scale.CARD.minutes)


def memory(planned, used, more=0, device="CUDA0", card="0000:01"):
    free = 80 * GB
    return {"topic": "memory", "device": device, "pci_id": card, "planned": planned, "free_opened": free, "free_loaded": free - used,
            "free_warm": free - used, "free_stepped": free - used - more}


class Memory(Quiet):
    def judge(self, *lines, devices=(), size=9 * GB):
        report = Report(10)
        lite.judge_steps(report, "steps", lines, 1000, 4e9, devices, size)
        return report

    def test_within_one_percent(self):
        report = self.judge(memory(9 * GB, 9 * GB + 80_000_000), devices=["CUDA0"])
        self.assert_verdict(report)
        self.assertEqual(len(report.goals), 1)

    def test_more_than_planned(self):
        self.assert_verdict(self.judge(memory(9 * GB, 9 * GB + 100_000_000)), failed=["steps"], missed=["memory"])

    def test_less_than_planned(self):
        self.assert_verdict(self.judge(memory(9 * GB, 9 * GB - 100_000_000)), failed=["steps"], missed=["memory"])

    def test_one_byte_more_after_the_steps(self):
        self.assert_verdict(self.judge(memory(9 * GB, 9 * GB, 1)), failed=["steps"])

    def test_logical_devices_share_a_card(self):
        # Each sees what the whole card has.
        both = 10 * GB
        self.assert_verdict(self.judge(memory(4 * GB, both), memory(6 * GB, both, device="CUDA0.1")))

    def test_a_device_without_work(self):
        self.assert_verdict(self.judge(memory(9 * GB, 9 * GB), memory(0, 0, device="CUDA1", card="0000:02"), devices=["CUDA1"]), failed=["steps"])

    def test_a_small_model_is_not_held_against_the_plan(self):
        self.assert_verdict(self.judge(memory(GB, 2 * GB), size=GB))

    def test_a_large_model_that_no_card_holds_is_no_proof(self):
        self.assert_verdict(self.judge(memory(GB, GB)), left_out=["memory against plan"])


def line(topic="product", goal="", seconds=1.0, estimated=1.0, unit="copy", **more):
    return {"topic": topic, "what": topic, "type": "q8_0", "rows": 1, "kernel": "k.cuda", "bytes": 1000, "operations": 4000, "unit": unit, "goal": goal,
            "seconds": seconds, "estimated": estimated} | more


RATES = {"copy": 1000, "f16": 4000}
GOOD = [line("attention", "576/512, one token"), line("attention", "576/512, 128 heads", unit="f16"), line("product", "one-row product"),
        line("experts", "experts, 128 rows each")]


class Speeds(Quiet):
    def judge(self, *lines, rates=RATES, goals=True):
        report = Report(10)
        speeds.judge(report, "cuda_ampere", lines, rates, goals)
        return report

    def test_figures(self):
        self.assertEqual(speeds.GOALS, {"576/512, one token": (0.6, 0.9), "576/512, 128 heads": (0.45, 0.6), "one-row product": (0.75, 0.9),
                                        "experts, 128 rows each": (0.4, 0.7)})
        self.assertEqual((speeds.ESTIMATE, lite.GOAL, lite.AIM, lite.MEMORY, lite.DEPTH), (1.3, 0.5, 0.75, 0.01, 61440))
        self.assertEqual((scale.CARD.rig_steps, scale.CARD.lite_steps, scale.EMULATED.rig_steps), (1000, 1000, 1000))

    def test_shares_by_goal(self):
        for goal, (minimum, _) in speeds.GOALS.items():
            others = [good for good in GOOD if good["goal"] != goal]
            unit = "f16" if "heads" in goal else "copy"
            for share, missed in ((minimum * 1.01, []), (minimum * 0.99, [goal])):
                with self.subTest(goal=goal, share=share):
                    seconds = 1 / share
                    report = self.judge(*others, line("attention", goal, seconds=seconds, estimated=seconds, unit=unit))
                    self.assert_verdict(report, missed=missed)

    def test_the_lowest_share_counts(self):
        self.assert_verdict(self.judge(*GOOD, line("product", "one-row product", seconds=2, estimated=2)), missed=["one-row product"])

    def test_estimates(self):
        for ratio, missed in ((1.29, []), (1.31, ["estimates"]), (1 / 1.29, []), (1 / 1.31, ["estimates"])):
            with self.subTest(ratio=ratio):
                self.assert_verdict(self.judge(*GOOD, line("rows", estimated=1 / ratio)), missed=missed)

    def test_a_goal_without_measurement_is_left_out(self):
        self.assert_verdict(self.judge(*GOOD[1:]), left_out=["576/512, one token"])
        no_rate = self.judge(*GOOD, rates={"copy": 1000})
        self.assert_verdict(no_rate, left_out=["576/512, 128 heads"])
        self.assert_verdict(self.judge(), left_out=[*speeds.GOALS, "estimates"])

    def test_what_was_not_measured(self):
        late = {"topic": "product", "what": "late", "type": "q8_0", "rows": 1, "left_out": True}
        failed = late | {"failed": "out of memory", "what": "bad"}
        del failed["left_out"]
        self.assert_verdict(self.judge(*GOOD, late, failed), failed=["bad"], left_out=["1 of 2"])

    def test_no_goals(self):
        report = self.judge(line("product", "one-row product", seconds=100), goals=False)
        self.assert_verdict(report)
        self.assertEqual(report.goals, [])

    def test_made_up_figures(self):
        card = {"described_bandwidth": 1000, "processors": 1, "clock": 1}
        planned = [{key: value for key, value in good.items() if key != "seconds"} for good in GOOD]
        rates, lines = speeds.made_up([*planned, planned[0] | {"estimated": 0}], card)
        self.assertEqual([made["seconds"] for made in lines], [1.0] * 4)
        self.assert_verdict(self.judge(*lines, rates=rates))


class Sweep(Quiet):
    def judge(self, generation, predicted, goals=True, copy_rate=1000.0, depth=1000, prompt=100.0):
        report = Report(10)
        lines = [{"n_kv": depth, "tg": 0, "speed_pp": prompt, "speed_tg": generation}]
        plan = {(depth, "prompt"): 100.0, (depth, "generation"): predicted}
        # 100 bytes of weights and 0.9 a cached token: 1000 a token, so that copies allow one token a second.
        lite.judge_sweep(report, "sweep", lines, plan, 100, 0.9, copy_rate, 512, 1000, goals)
        return report

    def test_generation_deep_in_the_context(self):
        self.assert_verdict(self.judge(0.51, 0.51))
        self.assert_verdict(self.judge(0.49, 0.49), missed=["generation at 1000 tokens"])

    def test_predictions(self):
        for ratio, missed in ((1.29, []), (1.31, ["generation, tokens/s"]), (1 / 1.29, []), (1 / 1.31, ["generation, tokens/s"])):
            with self.subTest(ratio=ratio):
                self.assert_verdict(self.judge(0.8, 0.8 * ratio), missed=missed)
        self.assert_verdict(self.judge(0.8, 0.8, prompt=50.0), missed=["prompt, tokens/s"])

    def test_what_is_missing_is_left_out(self):
        self.assert_verdict(self.judge(0.8, 0.8, copy_rate=None), left_out=["deep in the context"])
        self.assert_verdict(self.judge(0.8, 0.8, depth=500), left_out=["deep in the context"])
        self.assert_verdict(self.judge(0.8, None), left_out=["prediction of generation"])
        self.assertEqual(self.judge(0.1, 0.8, goals=False).goals, [])


class Comparisons(Quiet):
    def test_in_turn_every_lowering_and_cache_is_a_prompt_and_read_token_by_token(self):
        machine = types.SimpleNamespace(work=self.folder, emulated=True)
        model = models.Model("m", self.folder / "m.gguf", scale.CACHES, 3)
        both, turns = (models.comparisons(machine, of, [model]) for of in (scale.CARD, scale.EMULATED))
        self.assertEqual((len(both), len(turns)), (32, 8))
        for of in (both, turns):
            self.assertEqual({(c.lowering, c.rows) for c in of}, {(mla, rows) for mla in "0123" for rows in (1, 512)})
            self.assertEqual({(c.cache, c.rows) for c in of}, {(cache, rows) for cache in scale.CACHES for rows in (1, 512)})
        # One cache, or two: every lowering all the same.
        for caches in (("f16",), ("f16", "q8_0")):
            few = models.comparisons(machine, scale.EMULATED, [model._replace(caches=caches)])
            self.assertEqual(sorted(c.lowering for c in few), list("0123"))
            self.assertEqual({c.cache for c in few}, set(caches))


JUNIT = '<testsuites><testsuite><testcase classname="p.table" name="table"/>%s</testsuite></testsuites>'


class Kernels(Quiet):
    """Against a plugin-test that is a script."""

    def run_with(self, cases, scale=scale.EMULATED, limit=60):
        self.script("bin/tessera", f'''echo "$@" >>"{self.folder}/words"
case "$*" in
*--list*) echo "group: device CUDA0"; echo "group: rms_norm.cuda on CUDA0"; echo "group: moe_ffn.cuda on CUDA0"; exit 0 ;;
esac
while [ $# -gt 0 ]; do [ "$1" = --junit ] && file=$2; [ "$1" = --group ] && group=$2; shift; done
case $group in device*) cases='<testcase classname="p.device CUDA0" name="copies"/>' ;;
rms*) cases='<testcase classname="p.rms_norm.cuda on CUDA0" name="f32"/>' ;;
*) cases='{cases}' ;;
esac
printf '{JUNIT}' "$cases" >"$file"''')
        (self.folder / "plugins").mkdir(exist_ok=True)
        machine = types.SimpleNamespace(plugins={"cuda_ampere": self.folder / "plugins/tessera_cuda_ampere"}, cards={"cuda_ampere": [{"card": "CUDA0"}]},
                                        work=self.folder, environment=dict(os.environ), at_once=lambda: 1,
                                        tessera=lambda *words: [self.folder / "bin/tessera", *words])
        report = Report(limit)
        kernels.plugin_test(machine, report, "cuda_ampere", scale)
        words = (self.folder / "words").read_text().splitlines()
        return report, {group: next((w for w in words if f"--group {group}" in w), "") for group in ("device", "rms_norm", "moe_ffn")}

    def setUp(self):
        super().setUp()
        (self.folder / "plugins").mkdir()
        (self.folder / "plugins" / kernels.FUSED_REFERENCE).write_text("")

    def test_fused_kernels_are_compared_with_the_plugin_of_the_cpu(self):
        report, words = self.run_with('<testcase classname="p.moe_ffn.cuda on CUDA0" name="q8_0"/>')
        self.assert_verdict(report)
        self.assertIn(f"--reference {self.folder}/plugins/{kernels.FUSED_REFERENCE}", words["moe_ffn"])
        self.assertNotIn("--reference", words["rms_norm"])
        self.assertNotIn("--reference", words["device"])

    def test_a_kernel_of_which_no_case_passed(self):
        report, _ = self.run_with('<testcase classname="p.moe_ffn.cuda on CUDA0" name="q8_0"><skipped message="no reference"/></testcase>')
        self.assert_verdict(report, failed=["moe_ffn.cuda on CUDA0"])
        self.assertIn("no reference", "\n".join(report.lines))

    def test_a_kernel_of_which_a_case_fails(self):
        report, _ = self.run_with('<testcase classname="p.moe_ffn.cuda on CUDA0" name="q8_0"><failure message="0.1"/></testcase>')
        self.assert_verdict(report, failed=["moe_ffn.cuda on CUDA0"])

    def test_without_the_plugin_of_the_cpu_fused_kernels_are_left_out(self):
        (self.folder / "plugins" / kernels.FUSED_REFERENCE).unlink()
        report, words = self.run_with("")
        self.assert_verdict(report, left_out=["fused kernels"])
        self.assertEqual(words["moe_ffn"], "")

    def test_no_time(self):
        report, _ = self.run_with("", limit=0.01)
        self.assertEqual(report.status(), reports.FAILED)  # nothing is listed


MEMCHECK = "========= COMPUTE-SANITIZER\\n========= ERROR SUMMARY: %d error%s\\n"


class Sanitizer(Quiet):
    def verdict(self, text, status=0, limit=10):
        passed, self.why = kernels.sanitizer_verdict(Done([self.script("sanitizer", f"printf '{text}'\nexit {status}")], timeout=limit))
        return passed

    def test_verdicts(self):
        self.assertIs(self.verdict(MEMCHECK % (0, "s")), True)
        self.assertIs(self.verdict(MEMCHECK % (1, ""), 9), False)
        self.assertIs(self.verdict(MEMCHECK % (1, ""), 0), False)
        self.assertIs(self.verdict(MEMCHECK % (0, "s"), 1), False)  # the program itself failed
        self.assertIs(self.verdict("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\\n"), True)
        self.assertIs(self.verdict("========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)\\n", 9), False)
        self.assertIs(self.verdict("========= RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)\\n"), False)
        self.assertIs(self.verdict("========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)\\n"), True)
        self.assertIsNone(self.verdict("========= Error: Target application terminated before first instrumented API call\\n", 255))
        self.assertIsNone(self.verdict("'; exec sleep 60; echo '", limit=0.2))
        self.assertIn("it was ended after", self.why)

    def run_with(self, text, status=0):
        machine = types.SimpleNamespace(folder=self.folder, toolkits=self.folder, work=self.folder, emulated=False, environment=dict(os.environ),
                                        at_once=lambda: 2, plugins={"cuda_ampere": self.folder / "p"}, cards={"cuda_ampere": [{"card": "CUDA0"}]},
                                        owners=lambda: ["cuda_ampere"], configuration=lambda name: "c", program=lambda name: name,
                                        tessera=lambda *words: ["tessera", *words])
        if text is not None:
            self.script("compute-sanitizer/compute-sanitizer", f"echo \"$@\" >>'{self.folder}/words'\nprintf '{text}'\nexit {status}")
        report = Report(60)
        kernels.sanitizer(machine, report)
        return report

    def test_each_kernel_and_a_model(self):
        self.assert_verdict(self.run_with(MEMCHECK % (0, "s")))
        words = (self.folder / "words").read_text()
        self.assertEqual((words.count("--tool memcheck"), words.count("--tool racecheck"), words.count("--small")), (2, 1, 2))

    def test_errors_fail(self):
        self.assertEqual(len(self.run_with(MEMCHECK % (2, "s"), 9).failed), 3)

    def test_one_that_does_not_run_is_left_out(self):
        report = self.run_with("cannot attach", 255)
        self.assertEqual((report.failed, len(report.left_out)), ([], 3))
        self.assertIn("cannot attach", report.left_out[0])

    @unittest.skipIf(any((pathlib.Path(folder) / "compute-sanitizer").exists() for folder in os.environ["PATH"].split(":")), "it is installed")
    def test_none_is_left_out(self):
        self.assert_verdict(self.run_with(None), left_out=["compute-sanitizer (it is neither carried nor installed)"])


class Folder(Quiet):
    def build(self, archs):
        (self.folder / "CMakeCache.txt").write_text(f"TSR_CUDA:BOOL=ON\nTSR_CUDA_ARCHS:STRING={archs}\n")
        return build.newest_trial(self.folder)

    def test_cards_that_the_manifest_of_cuda_legacy_is_opened_for(self):
        self.assertEqual(self.build("90;90@61"), "9.0")
        self.assertEqual(self.build("61;80;120@61;90@61"), "12.0")
        self.assertEqual(self.build("90@80"), None)
        self.assertEqual(self.build("60;61;70;80"), None)
        self.assertEqual(self.build(""), None)

    def test_manifest(self):
        manifest = self.folder / "m.toml"
        manifest.write_text((SOURCE / "plugins/cuda_legacy/cuda_legacy.toml.in").read_text())
        build.serve_up_to(manifest, "9.0")
        self.assertIn('\nmaximum_compute_capability = "9.0"\n', manifest.read_text())
        manifest.write_text("[library]\n")
        with self.assertRaises(SystemExit):
            build.serve_up_to(manifest, "9.0")

    def test_sanitizer_from_a_wheel(self):
        wheel = self.folder / "w.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in ("nvidia/cuda_sanitizer_api/bin/compute-sanitizer", "nvidia/cuda_sanitizer_api/lib/libsanitizer-collection.so",
                         "nvidia/cuda_sanitizer_api/include/sanitizer.h", "w.dist-info/licenses/License.txt"):
                archive.writestr(name, "#!/bin/sh\necho runs\n")
        build.unpack_sanitizer(wheel, self.folder / "s")
        self.assertEqual({p.name for p in (self.folder / "s").iterdir()}, {"compute-sanitizer", "libsanitizer-collection.so", "License.txt"})
        self.assertEqual(Done([self.folder / "s/compute-sanitizer"]).out, "runs\n")


class Command(Quiet):
    """The command, in a folder whose programs are scripts."""

    def run_with(self, wrappers, *words):
        card = {"topic": "card", "card": "CUDA0", "name": "made up", "capability": 900, "processors": 132, "l2": 2**25, "described_bandwidth": 1e12,
                "clock": 1e9}
        self.script("bin/measure_card", f"echo '{json.dumps(card)}'")
        self.script("bin/tessera", "echo answer; echo 'CUDA0: uses weights 1 MiB' >&2")
        for name, status in wrappers.items():
            self.script(f"bin/cuda_wrappers_{name}_test", f"echo tested; exit {status}")
        (self.folder / "lib/tessera/plugins").mkdir(parents=True, exist_ok=True)
        for name in ("cuda_ampere", "cuda_legacy"):
            (self.folder / f"lib/tessera/plugins/tessera_{name}.so").write_text("")
        (self.folder / "share").mkdir(exist_ok=True)
        (self.folder / "share/demo-made-up.gguf").write_text("")
        output = self.folder / "report.md"
        environment = {key: value for key, value in os.environ.items() if key != "TESSERA_EMULATED_GPUS"}
        done = subprocess.run([sys.executable, SOURCE / "tools/gpu_acceptance", "run", self.folder, "--only", "answers", "--output", output, *words],
                              capture_output=True, text=True, env=environment)
        return done, output.read_text()

    def test_passes(self):
        done, text = self.run_with({"ampere": 0, "legacy": 0})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("all passed", text)
        self.assertIn("Not asked for: kernels", text)
        self.assertIn("cuda_legacy | What is the capital of France? | answer", text)

    def test_a_wrapper_that_fails_ends_it(self):
        done, text = self.run_with({"ampere": 1, "legacy": 0})
        self.assertEqual(done.returncode, 1)
        self.assertIn("## Wrappers: cuda_legacy", text)
        self.assertNotIn("## Answers", text)
        self.assertIn("answers (a wrapper failed", done.stdout)

    def test_unless_it_is_told_to_go_on(self):
        done, text = self.run_with({"ampere": 1, "legacy": 0}, "--keep-going")
        self.assertEqual(done.returncode, 1)
        self.assertIn("## Answers", text)

    def test_no_wrappers(self):
        done, text = self.run_with({"ampere": 0})
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: Wrappers: cuda_legacy", text)

    def test_without_time_it_is_incomplete(self):
        self.run_with({"ampere": 0, "legacy": 0})
        (self.folder / "bin/tessera").write_text("#!/bin/sh\nexec sleep 60\n")
        words = [sys.executable, SOURCE / "tools/gpu_acceptance", "run", self.folder, "--only", "answers", "--minutes", "0.02", "--output",
                 self.folder / "report.md"]
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("incomplete", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
