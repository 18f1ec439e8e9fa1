"""TAEHV on a platform: the same command on two nodes, told apart by WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT alone."""

import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1])]
from ranked_training import TRAINER, RankedTraining  # noqa: E402
from support.ports import free_port  # noqa: E402
from support.processes import environment_of_a_program  # noqa: E402

STEP = r"Step {0}/2 \| Loss: \d\.\d{{4}} \| PSNR: \d+\.\d\d dB \| lr \S+ \| \d+ frames/s \| \S+ s"
LIMITS = "ranks wait 300 s for each other, and then at most (in seconds) start=600,step=300,eval=300,save=600,silence=8"


class Platform(RankedTraining):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.data.mkdir()
        for frame in range(16):
            (self.data / f"{frame:03}.ppm").write_bytes(b"P6 32 32 255\n" + bytes((frame * 9, 70, 200)) * 1024)

    def start_node(self, node, *flags, **more):
        environment = environment_of_a_program("TMPDIR", WORLD_SIZE="2", RANK=str(node), MASTER_ADDR="127.0.0.1",
                                               MASTER_PORT=str(self.port), CUDA_VISIBLE_DEVICES="", **more)
        command = [TRAINER, "launch", "--", TRAINER, "train", "--model", "taehv-nano", "--data", self.data, "--out", self.folder / "out",
                   "--log-dir", "off", "--tensorboard", "off", "--steps", 2, "--threads", 1, *flags]
        return self.spawn(list(map(str, command)), environment)

    def said_by_nodes(self, *flags, **more):
        nodes = [self.start_node(node, *flags, **more) for node in (0, 1)]
        return [self.finish(node)[0].splitlines() for node in nodes]

    def start_of(self, node, last):
        return [
            "GPUs per node: 0", "Nodes: 2", f"This node: {node}", f"Master: 127.0.0.1:{self.port}", "Total processes: 2",
            f"[1/5] variables: node {node} of 2, by a platform's WORLD_SIZE and RANK; no GPU is visible (CUDA_VISIBLE_DEVICES=); "
            "1 process on a node, 2 in all",
            f"[2/5] collectives: Gloo over lo (127.0.0.1): no GPU is visible; {LIMITS}",
            "[3/5] environment: computes on the CPU (no GPU is visible); libtorch 2.11.0; data: 16 frames in 1 video",
            "[4/5] configuration: 2 ranks (auto: from preset taehv-nano: its batch of 8 is kept): batch of 8 = 2 ranks x 1 pass of 4, "
            "lr 0.002, fp32, 1 data thread",
            last,
        ]

    def test_each_node_says_who_it_is_in_five_phases_and_rank_0_the_steps(self):
        first, second = self.said_by_nodes("--config", "auto")
        start = self.start_of(0, f"[5/5] rank 0 coordinates at 127.0.0.1:{self.port}, 1 other rank joins")
        self.assertEqual(first[: len(start)], start)
        start = self.start_of(1, f"[5/5] rank 1 joins rank 0 at 127.0.0.1:{self.port}")
        self.assertEqual(second[: len(start)], start)
        self.assertRegex(second[len(start)], r"^rank 1/2 joined in \d+\.\d s on node ")
        steps = [line for line in first if line.startswith("Step ")]
        for number, line in enumerate(steps, 1):
            self.assertRegex(line, f"^{STEP.format(number)}( |$)")
        self.assertEqual(len(steps), 2)
        table = "\n".join(first)
        self.assertRegex(table, r"(?m)^log-style +platform +a platform's WORLD_SIZE and RANK, without an operator$")
        self.assertRegex(table, r"(?m)^batch-size +8 +config of 2 ranks$")

    def test_under_the_operator_and_by_a_flag_the_lines_are_the_usual_ones(self):
        of_operator = {"TRAININGJOB_UID": "uid-1", "TRAININGJOB_NAME": "taehv", "TRAININGJOB_ATTEMPT": "0"}
        for flags, more in (((), of_operator), (("--log-style", "trainer"), {})):
            with self.subTest(flags):
                first, second = self.said_by_nodes("--out", self.folder / f"out-{len(flags)}", "--progress-port", "off", *flags, **more)
                said = "\n".join(first + second)
                self.assertRegex(said, r"(?m)^step 2/2 \| loss \d\.\d{4} \| PSNR \d+\.\d\d dB \|")
                self.assertIn("collectives: Gloo over lo", said)
                for words in ("GPUs per node", "/5] ", "Step "):
                    self.assertNotIn(words, said)


if __name__ == "__main__":
    unittest.main()
