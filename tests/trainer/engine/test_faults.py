"""Faults of one rank while all train: every process ends within seconds, and says who began it."""

import os
import signal
import time

from engine import EngineTest, free_port
from store_proxy import StoreProxy

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 12)
ENDLESS = (*SMALL, "--steps", 1_000_000, "--log-every", 1)
END_SECONDS_MAX = 2  # from the sentence to the last process, and from a failure that is noticed at once
SLACK_SECONDS = 3  # of a busy machine
PLACE = r"(in|after) [a-z -]+ no\. \d+( and \d+ gradients)?"


class Faults(EngineTest):
    def start_ranks(self, world_size, *flags, within_of=()):
        """`within_of`: for single ranks a command that runs theirs."""
        return [
            self.start(
                *flags,
                rank=rank,
                world_size=world_size,
                environment={"NODE_NAME": f"node-{rank}"},
                within=dict(within_of).get(rank, ()),
            )
            for rank in range(world_size)
        ]

    def wait_for_step(self, process, step=3):
        for line in process.stdout:
            if line.startswith(f"step {step}/"):
                return
        self.fail("no step: " + process.stderr.read())

    def test_a_write_to_a_rank_that_is_gone_is_no_signal(self):
        """Such a write makes the kernel send SIGPIPE, at a moment that no test can choose."""
        ranks = self.start_ranks(2, *SMALL, "--steps", 200, "--log-every", 1)
        self.wait_for_step(ranks[0])
        for rank in ranks:
            rank.send_signal(signal.SIGPIPE)
        for rank in ranks:
            self.finish(rank)

    def test_a_rank_whose_lines_nobody_reads_ends_as_in_any_pipeline(self):
        for ignores, steps, code, of_other in ((False, 1_000_000, -signal.SIGPIPE, 76), (True, 200, 0, 0)):
            with self.subTest(ignores=ignores):
                self.port = free_port()
                lines, writer = os.pipe()
                flags = (*SMALL, "--steps", steps, "--log-every", 1, "--out", self.folder / str(ignores))
                popen = {"preexec_fn": lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN)} if ignores else {}
                unread = self.start(*flags, rank=0, world_size=2, stdout=writer, **popen)
                other = self.start(*flags, rank=1, world_size=2)
                os.close(writer)
                with open(lines) as stdout:
                    self.assertTrue(any(line.startswith("step 3/") for line in stdout))
                self.finish(unread, code)
                self.finish(other, of_other)

    def test_a_frozen_rank_is_named_and_all_others_end(self):
        ranks = self.start_ranks(3, *ENDLESS, "--limit", "silence=3")
        self.wait_for_step(ranks[0], 300)  # later than the first look at it
        begun = time.monotonic()
        ranks[1].send_signal(signal.SIGSTOP)
        causes = [self.cause(self.finish(ranks[rank], 76)[1]) for rank in (0, 2)]
        self.assertLess(time.monotonic() - begun, 3 + END_SECONDS_MAX + SLACK_SECONDS)
        for rank, cause in zip((0, 2), causes):
            self.assertRegex(
                cause,
                rf"^trainer: rank {rank}: rank 1 on node node-1 is frozen or unreachable: no sign of life for 3 s "
                rf"\(limit silence=3 s\), last seen in phase step after step \d+, {PLACE}; "
                rf"its process {ranks[1].pid} is stopped by a signal \(SIGSTOP\)$",
            )
        self.assertEqual((self.words(0)["reason"], self.words(2)["reason"]), ("PeerLost", "PeerLost"))
        end, ledger = self.events()[-2:]
        self.assertEqual((end["event"], ledger["event"]), ("failure", "ledger"))
        self.assertIn("rank 1 on node node-1 is frozen", end["message"])
        self.assertGreaterEqual(self.words(0)["step"], 3)

    def test_a_frozen_rank_0_is_named_though_it_carries_the_store(self):
        ranks = self.start_ranks(2, *ENDLESS, "--limit", "silence=3")
        self.wait_for_step(ranks[0], 1000)  # later than the first look at it, which takes a second
        begun = time.monotonic()
        ranks[0].send_signal(signal.SIGSTOP)
        cause = self.cause(self.finish(ranks[1], 76)[1])
        self.assertLess(time.monotonic() - begun, 3 + END_SECONDS_MAX + SLACK_SECONDS)
        self.assertRegex(
            cause,
            r"^trainer: rank 1: rank 0 on node node-0 is frozen or unreachable: its store does not answer for 3 s "
            rf"\(limit silence=3 s\), last seen in phase step after step \d+, {PLACE}; "
            rf"its process {ranks[0].pid} is stopped by a signal \(SIGSTOP\)$",
        )

    def test_a_rank_whose_output_nobody_reads_is_named_with_its_stack(self):
        """Its training thread waits in a write, as it would for a dead file server; its watchdog still speaks."""
        ranks = self.start_ranks(2, *ENDLESS, "--limit", "step=3")
        self.wait_for_step(ranks[0])  # and then nobody reads: the pipe fills up
        err0 = ranks[0].stderr.read()  # to the end
        self.assertRegex(
            self.cause(err0),
            r"^trainer: rank 0 on node node-0 stands still for \d s \(limit step=3 s\), in phase step after step \d+, "
            rf"{PLACE}; it is in [^ ]*write.* < tj::trainer::Reporter::step",
        )
        self.assertIn("trainer: rank 0: stack of the training thread:\n", err0)
        self.assertEqual(ranks[0].wait(SLACK_SECONDS), 70)
        err1 = self.finish(ranks[1], 76)[1]
        self.assertRegex(self.cause(err1), r"^trainer: rank 1: rank 0 on node node-0 stands still for \d s ")
        self.assertEqual((self.words(0)["reason"], self.words(1)["reason"]), ("Hung", "PeerLost"))

    def test_out_of_memory_of_one_rank_ends_all_with_its_cause(self):
        large = (*SMALL, "--width", 640, "--vocabulary", 1_000_000)  # embeddings of 2.6 GB
        ranks = self.start_ranks(2, *large, within_of={1: ("prlimit", f"--as={2 << 30}")})
        err0, err1 = self.finish(ranks[0], 76)[1], self.finish(ranks[1], 70)[1]
        self.assertRegex(
            self.cause(err1),
            r"^trainer: rank 1: out of memory with --accumulation 1 \(6 samples in a pass\); 2 or --recompute takes "
            r"less: .*can't allocate memory",
        )
        self.assertRegex(
            self.cause(err0),
            r"^trainer: rank 0: rank 1 on node node-1 failed first, in phase start: out of memory with --acc",
        )
        self.assertEqual(self.words(1)["reason"], "OutOfMemory")

    def test_the_cause_of_rank_0_outlives_its_store(self):
        """It ends once its watchdog knows that rank 1 knows; the training thread of rank 1 asks after that."""
        proxy = StoreProxy(self.port)
        self.addCleanup(proxy.close)
        ranks = []
        for rank, token, port in ((0, b"\xff\xff", self.port), (1, b"\1\0", proxy.port)):
            self.data = self.folder / f"{rank}.bin"
            self.data.write_bytes(token * 4096)
            flags = (*SMALL, "--vocabulary", 256, "--steps", 4)
            ranks.append(self.start(*flags, rank=rank, world_size=2, environment={"MASTER_PORT": str(port)}))
        damage = r"0\.bin: at byte \d+: the token is 65535"
        self.assertRegex(self.cause(self.finish(ranks[0], 65)[1]), rf"^trainer: rank 0: .*{damage}")
        err1 = self.finish(ranks[1], 76)[1]
        self.assertRegex(self.cause(err1), rf"^trainer: rank 1: rank 0 on node \S+ failed first, in phase start: .*{damage}")
