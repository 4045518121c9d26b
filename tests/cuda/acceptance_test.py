"""What tools/gpu_acceptance makes of made-up measurements, of commands that hang, and of runs that are killed: acceptance_test.py SOURCE."""

import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest

SOURCE = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "testing"))

from acceptance import build, kernels, lite, models, profile, scale, speeds, steps  # noqa: E402
from acceptance.journal import Journal  # noqa: E402
from acceptance.process import Done  # noqa: E402
from acceptance.report import Report  # noqa: E402
from acceptance.steps import FAILED, LEFT_OUT, MEASURED, NO_TIME, PASSED, Outcome, Part, Run, Step  # noqa: E402

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

    def machine(self, **more):
        """One whose programs are scripts in the folder."""
        said = {"emulated": False, "environment": dict(os.environ), "own_environment": dict(os.environ), "work": self.folder, "folder": self.folder,
                "toolkits": self.folder / "none", "why_gone": lambda: "", "owners": lambda: ["cuda_ampere"], "is_trial": lambda name: False,
                "card": lambda name: {"card": "CUDA0", "described_bandwidth": 2e12}, "plugins": {"cuda_ampere": self.folder / "plugins/tessera_cuda_ampere"},
                "at_once": lambda: 1, "program": lambda name: self.folder / "bin" / name, "configuration": lambda *names: "c",
                "done": lambda words, limit: Done(words, None, limit), "tessera": lambda *words: [self.folder / "bin/tessera", *words]}
        return types.SimpleNamespace(**said | more)

    def run_parts(self, parts, seconds=60, entries=(), **more):
        """One call of gpu_acceptance over these parts."""
        journal = Journal([self.folder / "journal"], entries)
        journal.add({"call": len(journal.calls()) + 1})
        run = Run(self.machine(**more), scale.CARD, journal, seconds)
        run.do(parts)
        return Report("title", journal, parts)

    def verdicts(self, report):
        return {entry["step"]: entry["verdict"] for part in report.parts for entry in report.entries(part)}


def part(*done, key="part", most=60, **more):
    return Part(key, key.capitalize(), lambda: [Step(name, do) for name, do in done], most, **more)


def passes(call):
    return Outcome()


class Processes(Quiet):
    def test_what_a_command_has_started_is_ended_with_it(self):
        child = self.folder / "child"
        for limit in (0.5, 5, 50):  # a busy machine may take longer to begin
            started = time.monotonic()
            done = Done([self.script("hangs", f"sleep 600 & echo $! >{child}; echo before; wait")], timeout=limit)
            self.assertLess(time.monotonic() - started, 300)
            if done.out:
                break
        self.assertEqual((done.status, done.out), (124, "before\n"))
        self.assertIn("ended after", done.err)
        self.assert_ended(child)

    def test_also_when_it_ends_by_itself(self):
        child = self.folder / "child"
        self.assertEqual(Done([self.script("leaves", f"sleep 600 & echo $! >{child}")], timeout=30).status, 0)
        self.assert_ended(child)

    def test_also_when_this_process_is_killed(self):
        child = self.folder / "child"
        script = self.script("hangs", f"sleep 600 & echo $! >{child}; wait")
        # It says when the command is watched.
        words = (f"import sys; sys.path.insert(0, {str(SOURCE / 'testing')!r}); from acceptance import process; tell = process.guard.tell; "
                 f"process.guard.tell = lambda *what: (tell(*what), print(*what, flush=True)); process.Done([{str(script)!r}])")
        with subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline()[0], "+")
            while not child.exists() or not child.read_text().strip():
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.assert_ended(child)

    def assert_ended(self, file):
        path = pathlib.Path(f"/proc/{file.read_text().strip()}/stat")
        for _ in range(30000):
            try:
                if path.read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                    return
            except OSError:
                return
            time.sleep(0.01)
        self.fail(f"{path} is there still")


class Runs(Quiet):
    def test_a_step_that_fails_breaks_off_or_hangs_is_no_hindrance(self):
        def breaks(call):
            raise ValueError("broken")

        report = self.run_parts([part(("fails", lambda call: Outcome(FAILED, "why")), ("breaks", breaks),
                                      ("hangs", lambda call: call.judged(["sleep", "60"], 0.2)[0]), ("passes", passes))])
        self.assertEqual(self.verdicts(report), {"fails": FAILED, "breaks": FAILED, "hangs": FAILED, "passes": PASSED})
        self.assertEqual(report.status(), 1)
        self.assertIn("FAILED: part: fails, breaks, hangs", report.verdict())
        self.assertIn("ValueError: broken", "\n".join(report.lines()))

    def test_steps_that_end_at_once_write_whole_reports(self):
        report = self.run_parts([part(("passes", passes))])
        path = self.folder / "report.md"
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for written in [pool.submit(report.write, path) for _ in range(400)]:
                written.result()
        self.assertEqual(path.read_text(), "\n".join(report.lines()))

    def test_what_has_no_time_is_left_out_and_done_by_the_next_call(self):
        parts = [part(("first", passes), ("long", lambda call: call.judged(["sleep", "60"])[0]), ("second", passes))]
        report = self.run_parts(parts, 0.5)
        self.assertEqual(self.verdicts(report), {"first": PASSED, "long": LEFT_OUT, "second": LEFT_OUT})
        self.assertEqual(report.status(), 3)
        parts = [part(("first", self.fail), ("long", passes), ("second", lambda call: Outcome(MEASURED)))]
        report = self.run_parts(parts, 60, Journal.read(self.folder / "journal"))
        self.assertEqual(self.verdicts(report), {"first": PASSED, "long": PASSED, "second": MEASURED})
        self.assertEqual([entry["call"] for entry in report.entries(parts[0])], [1, 2, 2])
        self.assertEqual((report.status(), report.verdict()), (0, "all passed"))

    def test_parts_that_were_not_begun_are_left_out_until_they_are(self):
        def parts():
            return [part(("a", lambda call: time.sleep(0.3) or Outcome())), part(("b", passes), key="other"), Part("none", "None", lambda: [], 60)]

        report = self.run_parts(parts(), 0.2)
        self.assertEqual(self.verdicts(report), {"a": PASSED, "all of it": LEFT_OUT})
        self.assertIn("other: all of it; none: all of it", report.verdict())
        report = self.run_parts(parts(), 60, Journal.read(self.folder / "journal"))
        self.assertEqual((self.verdicts(report), report.status()), ({"a": PASSED, "b": PASSED}, 0))

    def test_a_list_of_steps_that_fails_may_succeed_in_the_next_call(self):
        broken = Part("part", "Part", lambda: 1 / 0, 60)
        report = self.run_parts([broken])
        self.assertEqual(self.verdicts(report), {"all of it": FAILED})
        report = self.run_parts([part(("a", passes))], 60, Journal.read(self.folder / "journal"))
        self.assertEqual(self.verdicts(report), {"a": PASSED})

    def test_a_part_that_takes_long_lets_the_others_go_first(self):
        order = []

        def long(call):
            order.append("long")
            time.sleep(0.3)
            return Outcome()

        report = self.run_parts([part(("a", long), ("b", long), most=0.2, key="slow"), part(("c", lambda call: order.append("c") or Outcome()), key="other")])
        self.assertEqual(order, ["long", "c", "long"])
        self.assertEqual(set(self.verdicts(report).values()), {PASSED})

    def test_what_was_under_way_when_a_call_was_killed_comes_last(self):
        order = []

        def noted(name):
            return name, lambda call: order.append(name) or Outcome()

        entries = [{"call": 1}, {"part": "part", "step": "killer", "begun": 1}, {"part": "part", "step": "ended", "begun": 1},
                   {"part": "part", "step": "ended", "verdict": PASSED, "seconds": 1, "call": 1}]
        self.run_parts([part(noted("killer"), noted("a"), noted("ended")), part(noted("b"), key="other")], entries=entries)
        self.assertEqual(order, ["a", "b", "killer"])

    def test_a_journal_that_ends_in_the_middle_of_a_line(self):
        (self.folder / "journal").write_text('{"call": 1}\n{"part": "p", "step": "s", "verdict": "passed", "sec')
        self.assertEqual(Journal.read(self.folder / "journal"), [{"call": 1}])

    def test_the_report_is_there_after_each_step(self):
        output, seen = self.folder / "report.md", []
        journal = Journal([self.folder / "journal"])
        journal.add({"call": 1})
        parts = [part(("first", passes), ("second", lambda call: seen.append(output.read_text()) or Outcome()))]
        Run(self.machine(), scale.CARD, journal, 60, lambda: Report("t", journal, parts).write(output, "not ended")).do(parts)
        self.assertIn("| Part | 1 |", seen[0])
        self.assertIn("**not ended**", seen[0])

    def test_a_device_that_refuses_to_record_is_a_failure(self):
        said = "tessera: warning: CUDA0 refuses to record: in each step of generation the host launches the kernels of its 3 nodes one by one"
        report = self.run_parts([part(("run", lambda call: call.judged(["sh", "-c", f"echo '{said}' >&2"])[0]))])
        self.assertEqual(self.verdicts(report), {"run": FAILED})
        self.assertIn(said, "\n".join(report.lines()))

    def test_a_lost_card_ends_the_run_only_if_no_process_can_open_it(self):
        lost = ("lost", lambda call: call.judged(["sh", "-c", "echo 'CUDA0 is lost' >&2; exit 1"])[0])
        report = self.run_parts([part(lost, ("next", passes))])
        self.assertEqual(self.verdicts(report), {"lost": FAILED, "next": PASSED})
        report = self.run_parts([part(lost, ("next", passes)), part(("other", passes), key="other")], why_gone=lambda: "no card")
        self.assertEqual(self.verdicts(report), {"lost": FAILED, "next": LEFT_OUT, "all of it": LEFT_OUT})
        self.assertIn("no card", "\n".join(report.lines()))


def memory(planned, used, more=0, device="CUDA0", card="0000:01", recordings=3):
    free = 80 * GB
    return {"topic": "memory", "device": device, "pci_id": card, "planned": planned, "free_opened": free, "free_loaded": free - used,
            "free_warm": free - used, "free_stepped": free - used - more, "recordings": recordings}


class Memory(Quiet):
    def judge(self, *lines, **more):
        return lite.judge_steps("steps", lines, **more)

    def test_used_beside_planned(self):
        outcome = self.judge(memory(9 * GB, 9 * GB + 100_000_000), devices=["CUDA0"])
        self.assertEqual(outcome.verdict, MEASURED)
        self.assertIn("| CUDA0 | 9000.0 | 9100.0 | +1.11 % |", outcome.text[0])

    def test_a_driver_may_take_two_mebibytes_for_each_graph(self):
        self.assertEqual(self.judge(memory(9 * GB, 9 * GB, 6 << 20)).verdict, MEASURED)
        outcome = self.judge(memory(9 * GB, 9 * GB, (6 << 20) + 1))
        self.assertEqual(outcome.verdict, FAILED)
        self.assertIn("6291457 bytes of memory more", outcome.why)

    def test_an_emulated_one_takes_none(self):
        self.assertEqual(self.judge(memory(9 * GB, 9 * GB, 1), emulated=True).verdict, FAILED)

    def test_logical_devices_share_a_card(self):
        # Each sees what the whole card has.
        both = 10 * GB
        outcome = self.judge(memory(4 * GB, both), memory(6 * GB, both, device="CUDA0.1"), devices=["CUDA0", "CUDA0.1"])
        self.assertEqual(outcome.verdict, MEASURED)
        self.assertIn("+0.00 %", outcome.text[0])

    def test_a_device_without_work(self):
        self.assertEqual(self.judge(memory(9 * GB, 9 * GB), memory(0, 0, device="CUDA1", card="0000:02"), devices=["CUDA1"]).verdict, FAILED)


def line(topic="product", seconds=1.0, estimated=1.0, unit="read", **more):
    return {"topic": topic, "what": topic, "type": "q8_0", "rows": 1, "kernel": "k.cuda", "bytes": 1000, "operations": 4000, "unit": unit,
            "seconds": seconds, "estimated": estimated} | more


class Speeds(Quiet):
    def test_measured_beside_estimated(self):
        outcome = speeds.judge([line(), line(seconds=2.0, what="slow"), line(unit="f16", what="tensors")], {"read": 2000, "f16": 4000})
        self.assertEqual(outcome.verdict, MEASURED)
        self.assertEqual([(row[6], row[8]) for row in outcome.rows], [("0.50", "1.00"), ("0.25", "2.00"), ("1.00", "1.00")])
        self.assertIn("Of 3 estimates 2 are within a factor of 1.3 of the measured time: all but slow, q8_0, 1 row (2.00).", outcome.text)

    def test_what_was_not_measured(self):
        late = {"topic": "product", "what": "late", "type": "q8_0", "rows": 1, "left_out": True}
        failed = {"topic": "product", "what": "bad", "type": "q8_0", "rows": 1, "failed": "out of memory"}
        self.assertEqual(speeds.judge([late], {}).verdict, LEFT_OUT)
        outcome = speeds.judge([line(), late, failed], {})
        self.assertEqual((outcome.verdict, outcome.why), (FAILED, "bad, q8_0, 1 row: out of memory"))
        self.assertIn("No time was left for 1 of 2", "\n".join(outcome.text))

    def test_rates_and_what_plans_take(self):
        printed = [{"topic": "rate", "unit": "copy", "rate": 1e12}, {"topic": "latency", "what": "graph node, empty", "seconds": 1.5e-6, "assumed": 3e-6,
                                                                     "source": "assumed"}]
        self.script("bin/measure_card", "\n".join(f"echo '{json.dumps(one)}'" for one in printed))
        report = self.run_parts([speeds.rates(self.machine(), scale.CARD)])
        self.assertEqual(self.verdicts(report), {"cuda_ampere": MEASURED})
        text = "\n".join(report.lines())
        self.assertIn("| copies within the card (read and written) | 1000 GB/s | 2000 GB/s | 0.50 |", text)
        self.assertIn("| graph node, empty | 1.50 us | 3.00 us, assumed | 0.50 |", text)

    def test_each_topic_is_a_process_that_can_lose_its_card(self):
        self.script("bin/measure_card", f"case $5 in attention) echo 'CUDA0 is lost' >&2; exit 1;; *) echo '{json.dumps(line())}';; esac")
        one = speeds.speed(self.machine(), scale.CARD, lambda part, step: {"rates": {"read": 2000}}, "cuda_ampere", 60)
        self.assertEqual(self.verdicts(self.run_parts([one])), {"products": MEASURED, "attention": FAILED, "experts": FAILED, "rows": FAILED})


class Sweep(Quiet):
    def rows(self, read_rate=1000.0, depth=1000):
        lines = [{"n_kv": depth, "tg": 0, "speed_pp": 50.0, "speed_tg": 0.8}]
        plan = {(1000, "prompt"): 100.0, (1000, "generation"): 0.4}
        # 100 bytes of weights and 0.9 a cached token: 1000 a token, so that reads allow one token a second.
        return lite.judge_sweep(lines, plan, 100, 0.9, read_rate, 100)

    def test_predicted_beside_measured(self):
        self.assertEqual(self.rows(), [[1000, 100, "50.0", "100.0", "2.00", "0.8", "0.4", "0.50", "1", "0.80"]])

    def test_what_is_missing(self):
        self.assertEqual(self.rows(read_rate=None)[0][8:], ["", ""])
        self.assertEqual(self.rows(depth=500)[0][3:5], ["", ""])

    def test_the_file_stays_for_a_next_call_only_if_it_is_needed(self):
        small = lite.Lite(self.machine(), scale.QUICK)
        small.why, small.path = "", self.folder / "model.gguf"
        for needed in (True, False):
            small.path.write_text("model")
            self.assertEqual(small.close(needed), small.path if needed else None)
            self.assertEqual(small.path.exists(), needed)

    def test_the_file_is_written_beside_the_run(self):
        written = lite.Lite(self.machine(emulated=True), scale.QUICK)
        written.start()
        self.addCleanup(written.close, False)
        self.assertIsNone(written.wait(types.SimpleNamespace(left=lambda: 60)))
        self.assertTrue(written.path.exists())


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

    def run_with(self, cases, limit=60):
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
        (self.folder / "words").write_text("")
        report = self.run_parts(kernels.plugin_test(self.machine(), scale.CARD, "cuda_ampere", 60), limit)
        words = (self.folder / "words").read_text().splitlines()
        return report, {group: next((w for w in words if f"--group {group}" in w), "") for group in ("device", "rms_norm", "moe_ffn")}

    def setUp(self):
        super().setUp()
        (self.folder / "plugins").mkdir()
        (self.folder / "plugins" / kernels.FUSED_REFERENCE).write_text("")

    def test_fused_kernels_are_compared_with_the_plugin_of_the_cpu(self):
        report, words = self.run_with('<testcase classname="p.moe_ffn.cuda on CUDA0" name="q8_0"/>')
        self.assertEqual(self.verdicts(report), {"device CUDA0": PASSED, "rms_norm.cuda on CUDA0": PASSED, "moe_ffn.cuda on CUDA0": PASSED})
        self.assertIn(f"--reference {self.folder}/plugins/{kernels.FUSED_REFERENCE}", words["moe_ffn"])
        self.assertNotIn("--reference", words["rms_norm"])
        self.assertNotIn("--reference", words["device"])
        self.assertIn("| moe_ffn | 1 | 0 | 0 | q8_0 |", "\n".join(report.lines()))

    def test_a_kernel_of_which_no_case_passed(self):
        report, _ = self.run_with('<testcase classname="p.moe_ffn.cuda on CUDA0" name="q8_0"><skipped message="no reference"/></testcase>')
        self.assertEqual(self.verdicts(report)["moe_ffn.cuda on CUDA0"], FAILED)
        self.assertIn("no reference", "\n".join(report.lines()))

    def test_a_kernel_of_which_a_case_fails(self):
        report, _ = self.run_with('<testcase classname="p.moe_ffn.cuda on CUDA0" name="q8_0"><failure message="0.1"/></testcase>')
        self.assertEqual(self.verdicts(report)["moe_ffn.cuda on CUDA0"], FAILED)

    def test_without_the_plugin_of_the_cpu_fused_kernels_are_left_out(self):
        (self.folder / "plugins" / kernels.FUSED_REFERENCE).unlink()
        report, words = self.run_with("")
        self.assertEqual(self.verdicts(report)["moe_ffn.cuda on CUDA0"], LEFT_OUT)
        self.assertEqual(words["moe_ffn"], "")

    def test_a_plugin_test_that_lists_nothing(self):
        self.script("bin/tessera", "exit 1")
        report = self.run_parts(kernels.plugin_test(self.machine(), scale.CARD, "cuda_ampere", 60))
        self.assertEqual(self.verdicts(report), {"all of it": FAILED})


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
        if text is not None:
            self.script("carried/compute-sanitizer", f"echo \"$@\" >>'{self.folder}/words'\nprintf '{text}'\nexit {status}")
        return self.run_parts([kernels.sanitizer(self.machine())])

    def test_each_kernel_and_a_model(self):
        self.assertEqual(set(self.verdicts(self.run_with(MEMCHECK % (0, "s"))).values()), {PASSED})
        words = (self.folder / "words").read_text()
        self.assertEqual((words.count("--tool memcheck"), words.count("--tool racecheck"), words.count("--small")), (2, 1, 2))

    def test_errors_fail(self):
        self.assertEqual(list(self.verdicts(self.run_with(MEMCHECK % (2, "s"), 9)).values()), [FAILED] * 3)

    def test_one_that_does_not_run_is_left_out(self):
        report = self.run_with("cannot attach", 255)
        self.assertEqual(list(self.verdicts(report).values()), [LEFT_OUT] * 3)
        self.assertIn("cannot attach", "\n".join(report.lines()))


class Profilers(Quiet):
    def test_that_of_the_machine_comes_before_one_that_is_carried(self):
        carried = self.script("carried/some-profiler", "")
        self.assertEqual(kernels.find_tool(self.machine(), "some-profiler"), carried)
        toolkit = self.script("toolkits/cuda-13.0/bin/some-profiler", "")
        machine = self.machine(toolkits=self.folder / "toolkits")
        self.assertEqual(kernels.find_tool(machine, "some-profiler", "cuda*/bin/some-profiler"), toolkit)
        self.assertIsNone(kernels.find_tool(machine, "another-profiler", "cuda*/bin/another-profiler"))

    def test_they_run_with_the_libraries_of_the_machine(self):
        machine = self.machine(environment={"LD_LIBRARY_PATH": "/carried"})
        self.assertEqual(kernels.carried_libraries(machine, ["p"]), ["/usr/bin/env", "LD_LIBRARY_PATH=/carried", "p"])

    def test_metrics(self):
        head = '"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        text = "==PROF== connected\n" + head + '"0","combine","Speed","Duration","us","4.5"\n"0","combine","Launch","Registers Per Thread","","40"\n'
        self.assertEqual(profile.metrics(text), ("combine", {"Duration": "4.5 us", "Registers Per Thread": "40"}))
        self.assertEqual(profile.metrics("==ERROR== no counters"), (None, {}))

    def test_six_kernels_of_each_plugin(self):
        self.script("carried/ncu", "echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1")
        report = self.run_parts([profile.profiles(self.machine())])
        self.assertEqual(list(self.verdicts(report).values()), [LEFT_OUT] * 6)
        self.assertIn("ERR_NVGPUCTRPERM", "\n".join(report.lines()))


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

    def test_a_file_that_cannot_be_carried_is_refused(self):
        build.check_size("f", 26 * build.MIB, 34 * build.MIB, 26 * build.MIB)
        for size, tree in ((26 * build.MIB + 1, 0), (26 * build.MIB, 34 * build.MIB + 1)):
            with self.assertRaises(SystemExit):
                build.check_size("f", size, tree, 26 * build.MIB)

    def test_unpacked_once(self):
        (self.folder / "gpu/bin").mkdir(parents=True)
        (self.folder / "gpu/bin/tessera").write_text("program")
        build.compress(self.folder / "gpu", self.folder / "gpu.tar.xz", 0)
        os.environ["TMPDIR"], tempfile.tempdir = str(self.folder), None
        self.addCleanup(lambda: (os.environ.pop("TMPDIR"), setattr(tempfile, "tempdir", None)))
        first = build.unpack(self.folder / "gpu.tar.xz")
        self.assertEqual((first / "bin/tessera").read_text(), "program")
        (first / "left").write_text("")
        self.assertEqual(build.unpack(self.folder / "gpu.tar.xz"), first)
        self.assertTrue((first / "left").exists())
        (self.folder / "broken.tar.xz").write_text("no archive")
        with self.assertRaises(SystemExit):
            build.unpack(self.folder / "broken.tar.xz")


class Command(Quiet):
    """The command, in a folder whose programs are scripts."""

    def setUp(self):
        super().setUp()
        card = {"topic": "card", "card": "CUDA0", "name": "made up", "capability": 900, "processors": 132, "l2": 2**25, "described_bandwidth": 1e12,
                "clock": 1e9}
        self.script("bin/measure_card", f"echo '{json.dumps(card)}'")
        self.script("bin/tessera", "echo answer; echo 'CUDA0: uses weights 1 MiB' >&2")
        (self.folder / "lib/tessera/plugins").mkdir(parents=True, exist_ok=True)
        for name in ("cuda_ampere", "cuda_legacy"):
            (self.folder / f"lib/tessera/plugins/tessera_{name}.so").write_text("")
            self.wrappers(name.removeprefix("cuda_"), 0)
        (self.folder / build.BUILT).write_text('{"archs": ["90", "90@61"], "commit": "made-up"}')

    def wrappers(self, name, status):
        self.script(f"bin/cuda_wrappers_{name}_test", f"echo tested; exit {status}")

    def run_with(self, *words, only="wrappers,answers,legacy"):
        output = self.folder / "report.md"
        environment = {key: value for key, value in os.environ.items() if key != "TESSERA_EMULATED_GPUS"} | {"TMPDIR": str(self.folder)}
        done = subprocess.run([sys.executable, SOURCE / "tools/gpu_acceptance", "run", self.folder, "--only", only, "--output", output, *words],
                              capture_output=True, text=True, env=environment)
        return done, output.read_text() if output.exists() else ""

    def test_the_report(self):
        done, text = self.run_with(only="wrappers,answers")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("**all passed.**", text)
        self.assertIn("Built for 90 90@61 from made-up", text)
        self.assertIn("| cuda_ampere | What is the capital of France? | answer |", text)
        self.assertNotIn("has not ended", text)
        self.assertIn("No context could be held for the whole run: ", text)  # there is no driver

    def test_a_wrapper_that_fails_hides_nothing(self):
        self.wrappers("ampere", 1)
        done, text = self.run_with(only="wrappers,answers")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: wrappers: cuda_ampere", done.stdout)
        self.assertIn("## Answers", text)

    def test_no_wrappers(self):
        (self.folder / "bin/cuda_wrappers_legacy_test").unlink()
        done, _ = self.run_with(only="wrappers")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: wrappers: cuda_legacy", done.stdout)

    def test_a_second_call_does_what_the_first_has_left(self):
        self.script("bin/tessera", "exec sleep 60")
        done, _ = self.run_with("--minutes", "0.03", only="wrappers,answers")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("incomplete, left out: answers of cuda_ampere", done.stdout)
        self.script("bin/tessera", "echo answer; echo 'CUDA0: uses weights 1 MiB' >&2")
        (self.folder / "bin/cuda_wrappers_ampere_test").unlink()
        (self.folder / "report.md").unlink()
        (self.folder / "report.md.jsonl").unlink()
        done, text = self.run_with("--continue", only="wrappers,answers")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("| Wrappers of simt.hpp | 2 | 0 | 0 | 0 | 0 | 0 | 1 |", text)
        self.assertIn("| Answers of the bundled model: cuda_ampere | 2 | 0 | 0 | 0 | 0 | 0 | 2 |", text)

    def test_there_is_nothing_to_go_on_with(self):
        done, _ = self.run_with("--continue")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is no journal of a run before", done.stderr)

    def test_a_run_that_is_killed_leaves_what_it_had(self):
        self.script("bin/tessera", "exec sleep 60")
        environment = {key: value for key, value in os.environ.items() if key != "TESSERA_EMULATED_GPUS"} | {"TMPDIR": str(self.folder)}
        output = self.folder / "report.md"
        process = subprocess.Popen([sys.executable, SOURCE / "tools/gpu_acceptance", "run", self.folder, "--only", "wrappers,answers", "--output", output],
                                   stdout=subprocess.DEVNULL, env=environment)
        while not output.exists() or "| Wrappers of simt.hpp | 2 |" not in output.read_text():
            time.sleep(0.02)
        process.kill()
        process.wait()
        self.assertIn("This run has not ended", output.read_text())
        self.assertEqual(len([entry for entry in Journal.read(f"{output}.jsonl") if entry.get("verdict") == PASSED]), 2)


class Readme(unittest.TestCase):
    def test_cards_that_have_a_report_are_named_and_no_others(self):
        reports = [path.read_text().splitlines()[0] for path in (SOURCE / "bench/results").glob("gpu-*.md")]
        cards = sorted({title.removeprefix("# GPU acceptance: ") for title in reports if not title.endswith("emulated")})
        said = next(line for line in (SOURCE / "README.md").read_text().splitlines() if "Run on cards so far: " in line)
        self.assertEqual(said.split("Run on cards so far: ")[1].split(".")[0], ", ".join(cards) or "none")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
