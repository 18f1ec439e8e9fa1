"""The GPU kit's own rules: its times fit, a part that fails or does not end stops no other, and what it says of a model."""
import json
import pathlib
import re
import sys
import tempfile
import time
import unittest

KIT = pathlib.Path(__file__).resolve().parents[1] / "trainer/gpu_kit"
sys.path[:0] = [str(KIT), str(KIT.parents[1])]
import clips  # noqa: E402
import comparisons  # noqa: E402
import machine  # noqa: E402
import parts  # noqa: E402
import rows  # noqa: E402
import runner  # noqa: E402
import sizes  # noqa: E402
import speed  # noqa: E402
from support import modules  # noqa: E402


class GpuKit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        out = pathlib.Path(folder.name)
        (out / "logs").mkdir()
        here = machine.Machine(commit="c", torch="2.11.0", torch_lib="/none", nvidia_libs=[])
        ends = time.monotonic() + 60
        self.kit = runner.Kit(root=out, out=out, python=sys.executable, machine=here, size=sizes.SMALL, ends=ends,
                              part_ends=ends)

    def test_all_parts_fit_into_ten_minutes(self):
        self.assertLessEqual(sum(part.seconds for part in parts.PARTS if not part.is_asked_for), 575)

    def test_the_parts_are_those_of_the_document(self):
        table = re.findall(r"^\| `(\w+)` \| (\d+) \|", (KIT.parents[2] / "docs/gpu-kit.md").read_text(), re.MULTILINE)
        self.assertEqual(table, [(part.name, str(part.seconds)) for part in parts.PARTS])

    def test_a_part_that_breaks_is_a_row(self):
        def breaks(_):
            yield rows.judged("p", "first", True, "good")
            raise KeyError("gone")
        found = list(modules.load(KIT / "run", "gpu_kit_run").rows_of(parts.Part("p", "what", 1, breaks), self.kit))
        self.assertEqual([row.verdict for row in found], ["ok", "FAIL"])
        self.assertIn("KeyError: 'gone'", found[1].line())
        self.assertEqual(rows.closing_line(found), "1 passed, 1 failed, 0 skipped")

    def test_a_program_that_does_not_end_is_ended_and_told(self):
        self.kit.part_ends = time.monotonic() + 0.5
        with self.assertRaisesRegex(runner.Failed, r"stuck did not end in the 0 s .*; begun$|stuck did not end in the 1 s"):
            self.kit.run("stuck", ["/bin/sh", "-c", "echo begun; exec sleep 600"])

    def test_a_program_that_fails_is_told_with_its_last_lines(self):
        with self.assertRaisesRegex(runner.Failed, r"^bad: exit code 3; why$"):
            self.kit.run("bad", ["/bin/sh", "-c", "echo why; exit 3"])

    def test_losses_of_other_steps_are_not_compared(self):
        self.assertAlmostEqual(runner.farthest({1: 2.0, 2: 4.0}, {1: 2.0, 2: 4.4}), 0.1)
        with self.assertRaises(runner.Failed):
            runner.farthest({1: 2.0}, {1: 2.0, 2: 4.0})

    def test_a_workload_that_the_kit_does_not_know_fails(self):
        script = self.kit.root / "bin" / "trainer"
        script.parent.mkdir()
        models = [{"model": model, "workload": workload}
                  for model, workload in (("gpt2-nano", "gpt2"), ("gpt2-tiny", "gpt2"), ("robot-arm", "robot"))]
        script.write_text(f"#!/bin/sh\necho '{json.dumps(models)}'\n")
        script.chmod(0o755)
        found = comparisons.workloads(self.kit)
        self.assertEqual({name: case is not None for name, case in found.items()}, {"gpt2": True, "robot": False})

    def test_clips_for_pytorch_are_cut_out_of_the_pictures(self):
        size = sizes.SMALL.clips
        data = clips.clips_file(self.kit, size).read_bytes()
        self.assertEqual(len(data), clips.CLIPS_OF_PEER * size.frames * 3 * size.side * size.side)
        # Red rises by 3 from row to row and is the same along one, but for the square.
        plane = data[:size.side * size.side]
        steps = {(after - before) % 256 for before, after in zip(plane[::size.side], plane[size.side::size.side])}
        self.assertIn(3, steps)
        self.assertGreaterEqual(clips.videos_of(size).frames // size.frames, size.batch_size)

    def test_contenders_take_turns_and_one_that_breaks_stops_no_other(self):
        def ended(step):
            return runner.Ended([(second * step, f"step {second}/6 | loss 1.0 | lr") for second in range(1, 7)])

        def breaks(_):
            raise runner.Failed("gone")
        taken = speed.take_turns({"ours": lambda _: ended(0.5), "other": lambda _: ended(1.0), "third": breaks}, sizes.SMALL.clips)
        self.assertEqual(taken["ours"].seconds_per_step, [0.5])
        self.assertEqual(speed.beside_ours("other", taken), ", ours 2.00 x")
        self.assertEqual(str(taken["third"].broken), "gone")

    def test_a_build_without_decode_is_skipped(self):
        script = self.kit.root / "bin" / "trainer"
        script.parent.mkdir()
        script.write_text("#!/bin/sh\necho 'trainer train'\n")
        script.chmod(0o755)
        self.assertEqual([row.verdict for row in clips.decode(self.kit)], ["SKIP"])

    def test_a_decoded_video_is_told_as_it_starts_and_warm(self):
        script = self.kit.root / "bin" / "trainer"
        script.parent.mkdir()
        (self.kit.out / "taehv.pth").touch()
        script.write_text("""#!/bin/sh
if [ $1 = --help ]; then echo 'trainer decode ARGUMENTS'; fi
while [ $# -gt 0 ]; do [ $1 != --in ] || from=$2; shift; done
case $from in *latents-9.*) spent=1.00;; *) spent=1.60;; esac
echo "decoded latents [3, 16, 6, 8] to 9 frames of 64 x 48 in 3.00 s | 3.0 frames/s | model $spent s, input 0 s, output 0 s"
echo "peak memory: 900 MB of the process, 321 MB of tensors on cuda:0"
""")
        script.chmod(0o755)
        found, = clips.decode(self.kit)
        self.assertEqual(found.result, "3.00 s with its file, 1.00 s by the model, 0.20 s once warm, tensors took 321 MB")

    def test_flop_per_token_are_those_of_gpt2(self):
        """nanoGPT's own count for 124M: 6 x 123,653,376 + 12 x 12 x 768 x 1024."""
        self.assertEqual(sizes.FULL.shape.flops_per_token(), 6 * 123_653_376 + 12 * 12 * 768 * 1024)

    def test_a_card_without_a_known_peak_has_no_mfu(self):
        self.assertIsNone(self.kit.machine.peak_tflops)
        self.kit.machine.gpu = "NVIDIA H100 80GB HBM3"
        self.assertEqual(self.kit.machine.peak_tflops, 989)


if __name__ == "__main__":
    unittest.main()
