"""What the trainer's benchmark makes of its measurements (tests/bench/trainer)."""
import json
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "bench"
PROGRAM = """
import json, subprocess, sys
sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1] + "/trainer", sys.argv[1] + "/operator"]
import contenders, pathlib, qwen_data, report, tempfile
ends = [1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0]   # a second, then halves
late = ends + [9.0] + [9.0 + 0.6 * step for step in range(1, 12)]      # a save after step 12
results = {
    "where": {"nano": {"cpu": "X", "cores": 2, "memory_gib": 3, "kernel": "6", "load_before": 0.1, "commit": "abc",
                       "date": "2026-01-01"}},
    "steps": {"nano": {"timed": 8, "warmup": 2}},
    "nano": {"nano, 1 rank": {"ours": [100, 300, 120], "plain": [100, 100, 90], "transformers": [60, 60, 80]}},
    "zero3": {"nano, ZeRO-3, 2 ranks": {"ours": [50], "plain": [40], "transformers": [25]}},
    "peaks_mib": {"zero3": {"nano, ZeRO-3, 2 ranks": {"ours": [1200, 1000, 1300], "plain": [2000], "transformers": [3]}}},
    "taehv": {"taehv, batch 2": {
        "ours": [{"clips_per_second": rate, "cpu_seconds_per_step": 1.5, "peak_mib": 700} for rate in (3.0, 2.0, 4.0)],
        "plain": [{"clips_per_second": 2.0, "cpu_seconds_per_step": 2.5, "peak_mib": 1100}]}},
    "decode": {"video": "61 frames of 512x320", "seconds": 40.26, "frames_per_second": 1.52, "peak_mib": 1234},
    "qwen": {"parameters": {"qwen": 78000000, "vggt": 19000000}, "tokens": 262, **{
        part: {"case": "a case", "steps": {"timed": 4, "warmup": 2}, "runs": {
            name: [{"steps_per_second": rate * round, "cpu_seconds_per_step": 2.5, "peak_mib": 1100, "losses": [9.01, 8.5]} for round in (1, 2, 3)]
            for name, rate in rates.items()}}
        for part, rates in {"beside": {"ours": 0.3, "transformers": 0.2}, "alone": {"1 rank": 0.2, "2 ranks": 0.19, "2 apart": 0.2},
                            "seeing": {"off": 0.2, "kept": 0.18, "anew": 0.16}}.items()}},
    "checkpoint": {"ours": {"usual_step_ms": 5, "longest_step_after_ms": 6, "slowdown_percent": 2.0,
                            "said": [{"event": "checkpoint", "saved_step": 12, "stall_ms": 7.25}]}},
}
results["qwen"]["alone"] = [results["qwen"]["alone"]] * 2  # a table for each case
def peak(program):
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        parent.stdout.readline()
        return contenders.peak_mib(parent.pid)
child = "x = bytearray(100 << 20); print(flush=True); input()"
with subprocess.Popen([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.3: pass\\nprint(flush=True); input()"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as busy:
    busy.stdout.readline()
    cpu = contenders.cpu_seconds(busy.pid)
contenders.WORK.mkdir(parents=True, exist_ok=True)
shape, work = qwen_data.SHAPES["nano"], qwen_data.Work(conversations=2, history=1, scale=1)
with tempfile.TemporaryDirectory() as folder:
    qwen_data.write(pathlib.Path(folder), shape, work)
    conversation = qwen_data.read(pathlib.Path(folder))[0]
    ids, labels = next(qwen_data.encoded(pathlib.Path(folder), shape, work))
print(json.dumps({
    "ended": contenders.run_to_end([sys.executable, "-c", "x = bytearray(100 << 20); print('done')"]), "cpu": cpu, "cpu_per_step": contenders.Seen([], [], 0, [3.0, 4.0, 6.0]).cpu_seconds_per_step(1),
    "peaks": [peak("print(flush=True); input()"),
              peak(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")],
    "tokens": [ids, labels, conversation], "per_step": contenders.Seen(ends, []).seconds_per_step(2), "at_once": contenders.Seen([1.0, 1.0], []).seconds_per_step(1), "save": report.of_save(contenders.Seen(late, []), 12),
    "line": contenders.STEP.search("[0] step 3/9 | loss 5.5453 | lr").groups(), "text": report.text(results),
    "plot": report.plot(results), "nothing": report.document_with(f"a {report.BEGIN} x {report.END} b", {})}))
"""


class TrainerBench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A process of its own: two modules are called report.
        done = subprocess.run([sys.executable, "-c", PROGRAM, FOLDER], check=True, capture_output=True, text=True)
        cls.seen = json.loads(done.stdout)

    def test_the_first_steps_do_not_count(self):
        self.assertEqual(self.seen["per_step"], 0.5)
        self.assertGreater(self.seen["at_once"], 0)

    def test_a_save_is_held_against_the_steps_before_it(self):
        self.assertEqual(self.seen["save"], {"usual_step_ms": 500, "longest_step_after_ms": 2000, "slowdown_percent": 48.0})

    def test_a_line_of_a_step_is_known_behind_a_prefix(self):
        self.assertEqual(self.seen["line"], ["3", "5.5453"])

    def test_the_medians_are_compared(self):
        self.assertIn("| nano, 1 rank | 120 | 100 | 60 | 1.20 | 2.00 | 3, 83 % |", self.seen["text"])
        self.assertIn("| this trainer | 7.2 ms | 5 ms | 6 ms | 2.0 % |", self.seen["text"])
        self.assertIn(">2.00</text>", self.seen["plot"])

    def test_sharded_runs_are_a_table_of_their_own_with_memory_beside_it(self):
        rates, memory = self.seen["text"].split("### ZeRO-3 beside FSDP2")[1].split("### Peak of resident memory")
        self.assertIn("| nano, ZeRO-3, 2 ranks | 50 | 40 | 25 | 1.25 | 2.00 | 1, 0 % |", rates)
        self.assertIn("| nano, ZeRO-3, 2 ranks | 1,200 MiB | 2,000 MiB | 3 MiB |", memory)

    def test_clips_have_a_row_for_each_contender_with_time_and_memory_beside(self):
        table = self.seen["text"].split("### Clips per second of TAEHV")[1].split("###")[0]
        self.assertIn("| taehv, batch 2 | this trainer | 3.00 | 1.00 | 1.50 s | 700 MiB | 3, 33 % |", table)
        self.assertIn("| taehv, batch 2 | plain PyTorch | 2.00 | 1.50 | 2.50 s | 1,100 MiB | 1, 0 % |", table)

    def test_ratios_of_a_part_in_rounds_are_medians_of_the_rounds(self):
        beside, alone, _, seeing = self.seen["text"].split("### Qwen2.5-VL")[1].split("###")[0].split("\n\n**")[1:]
        self.assertIn("| transformers | 0.400 | 1.50 | 2.50 s | 1,100 MiB | 3, 50 % |", beside)
        self.assertIn("| 2 ranks | 0.380 | 1.90 | 2.50 s |", alone)
        self.assertIn("| 2 apart | 0.400 | 2.00 | 2.50 s |", alone)
        self.assertIn("| kept | 0.360 | 10.0% |", seeing)
        self.assertIn("| anew | 0.320 | 20.0% |", seeing)

    def test_a_conversation_becomes_the_tokens_of_qwens_template(self):
        ids, labels, conversation = self.seen["tokens"]
        question, answer = (turn["value"] for turn in conversation["conversations"])
        begin, end, picture_begin, picture_end, image, system, user, assistant = 500, 501, 502, 503, 505, 260, 263, 271
        picture = [picture_begin, *[image] * 9, picture_end]
        learned = [*answer.encode(), end, *b"\n"]
        self.assertEqual(ids, [begin, system, *b"\nYou are a helpful ", assistant, *b".", end, *b"\n", begin, user, *b"\n", *picture, *picture,
                               *question.replace("<image>", "").encode(), end, *b"\n", begin, assistant, *b"\n", *learned])
        self.assertEqual(labels, [-100] * (len(ids) - len(learned)) + learned)

    def test_a_decoded_video_is_told(self):
        self.assertIn("makes 61 frames of 512 x 320 of TAEHV's latents in 40.3 s, 1.52 frames/s, in 1,234 MiB.", self.seen["text"])
        self.assertEqual(self.seen["ended"][0], "done")
        self.assertGreater(self.seen["ended"][1], 100)

    def test_the_time_of_all_cores_is_counted(self):
        self.assertGreater(self.seen["cpu"], 0.2)
        self.assertEqual(self.seen["cpu_per_step"], 1.5)

    def test_the_peak_of_memory_is_that_of_the_largest_process(self):
        low, high = self.seen["peaks"]
        self.assertGreater(high - low, 60)

    def test_without_results_the_document_says_so(self):
        self.assertIn("Not taken yet.", self.seen["nothing"])


if __name__ == "__main__":
    unittest.main()
