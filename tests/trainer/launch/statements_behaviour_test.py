"""Real launchers that are told WORLD_SIZE and RANK alone, on nodes with two GPUs each that they only believe in.

  statements_behaviour_test.py TRAINER
"""
import os
import pathlib
import signal
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[1:3]]
from support.ports import free_port  # noqa: E402
from support.processes import ProcessTest  # noqa: E402

TRAINER = os.path.abspath(sys.argv.pop(1))
DEADLINE_S = 60
TELL = 'echo "rank $RANK of $WORLD_SIZE, local $LOCAL_RANK of $LOCAL_WORLD_SIZE"'


class Statements(ProcessTest):
    def setUp(self):
        self.port = str(free_port())

    def start(self, rank, world_size, node, *flags, gpus="0,1"):
        env = {"PATH": os.environ["PATH"], "WORLD_SIZE": str(world_size), "RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": self.port, "NODE_NAME": node, "CUDA_VISIBLE_DEVICES": gpus,
               "TRAININGJOB_TERMINATION_LOG": "/dev/null"}
        return self.spawn([TRAINER, "launch", *flags, "--", "sh", "-c", TELL], env)

    def finish_all(self, launchers, code=0):
        outputs = [process.communicate(timeout=DEADLINE_S) for process in launchers]
        for process, (out, err) in zip(launchers, outputs):
            self.assertEqual(process.returncode, code, out + err)
        told = sorted(line[line.rindex("rank "):] for out, _ in outputs for line in out.splitlines() if "local" in line)
        return told, [err for _, err in outputs]

    def test_a_launcher_on_each_node_makes_workers(self):
        told, errs = self.finish_all([self.start(rank, 2, f"node-{rank}") for rank in (1, 0)])
        self.assertEqual(told, [f"rank {rank} of 4, local {rank % 2} of 2" for rank in range(4)])
        for err in errs:
            self.assertIn("WORLD_SIZE counts workers: 2 launchers on 2 nodes, one on each", err)

    def test_two_launchers_on_each_node_make_processes(self):
        told, errs = self.finish_all([self.start(rank, 4, f"node-{rank // 2}") for rank in (3, 0, 2, 1)])
        self.assertEqual(told, [f"rank {rank} of 4, local {rank % 2} of 2" for rank in range(4)])
        for err in errs:
            self.assertIn("WORLD_SIZE counts processes: 4 launchers on 2 nodes, one for each GPU", err)

    def test_a_contradiction_ends_all_with_all_statements_named(self):
        _, errs = self.finish_all([self.start(0, 4, "node-a"), self.start(1, 4, "node-b", gpus="0,1,2,3")], code=78)
        for err in errs:
            self.assertIn("rank 0 of 4 on node node-a (2 GPUs), rank 1 of 4 on node node-b (4 GPUs)", err)

    def test_who_says_it_is_not_asked(self):
        told, errs = self.finish_all([self.start(2, 4, "node-a", "--convention", "workers")])
        self.assertEqual(told, ["rank 4 of 8, local 0 of 2", "rank 5 of 8, local 1 of 2"])
        self.assertNotIn("asking", errs[0])

    def test_a_waiting_launcher_can_be_stopped(self):
        process = self.start(1, 2, "node-a")
        self.assertIn("asking all launchers at 127.0.0.1:" + self.port, process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        _, (err,) = self.finish_all([process], code=75)
        self.assertIn("asked to stop while waiting for the other launchers", err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
