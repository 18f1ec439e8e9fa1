"""Ranks that do not meet, and ranks that go away: every wait ends, and says for whom it waited."""

import contextlib
import os
import re
import socket
import subprocess
import threading
import time

from engine import EngineTest, free_port

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 12)
ENDLESS = (*SMALL, "--steps", 1_000_000, "--log-every", 1)


class Meeting(EngineTest):
    def test_a_master_that_is_not_there(self):
        _, err = self.train(*SMALL, "--rendezvous-timeout-seconds", 1, code=69, rank=1, world_size=2)
        self.assertRegex(
            self.cause(err),
            rf"^trainer: rank 1 waited \d s for rank 0 at 127.0.0.1:{self.port}: Connection refused; nobody listens there: rank 0 must run "
        )
        self.assertEqual((self.words(1)["reason"], self.words(1)["rank"]), ("RendezvousFailed", 1))

    def test_a_master_that_accepts_and_never_answers(self):
        with socket.create_server(("127.0.0.1", self.port)):
            _, err = self.train(*SMALL, "--rendezvous-timeout-seconds", 1, code=69, rank=1, world_size=2)
        self.assertRegex(
            self.cause(err), rf"^trainer: rank 1 waited \d s for rank 0 at 127.0.0.1:{self.port}: .*; another program has that port"
        )
        self.assertEqual(self.words(1)["reason"], "RendezvousFailed")

    def test_a_name_that_does_not_resolve(self):
        _, err = self.train(
            *SMALL,
            "--rendezvous-timeout-seconds",
            1,
            code=69,
            rank=1,
            world_size=2,
            environment={"MASTER_ADDR": "no-such-host.invalid"},
        )
        self.assertRegex(
            self.cause(err),
            r"waited \d s for rank 0 at no-such-host.invalid:\d+: the name does not resolve \(.*\); MASTER_ADDR must be an address, or "
        )

    def causes_of_two_of_four(self, **environment_of_both):
        """What rank 0 and rank 2 say. Rank 2 is loaded and asks for rank 0 before that one's 4 s begin."""
        rank2 = self.start(*SMALL, rank=2, world_size=4, environment={"NODE_NAME": "node-b", **environment_of_both})
        self.assertIn("waits for rank 0", rank2.stderr.readline())
        rank0 = self.start(
            *SMALL, "--rendezvous-timeout-seconds", 4, rank=0, world_size=4,
            environment={"NODE_NAME": "node-a", **environment_of_both},
        )
        return [self.cause(self.finish(process, 69)[1]) for process in (rank0, rank2)]

    def test_rank_0_names_those_who_did_not_come(self):
        cause0, cause2 = self.causes_of_two_of_four()
        told = rf"rank 0 waited \d s for rank 1, rank 3 of world size 4 at port {self.port}; every worker must be started, and reach .*"
        self.assertRegex(cause0, f"^trainer: {told}$")
        self.assertRegex(cause2, f"^trainer: rank 2: rank 0 gave up: {told}$")

    def test_the_missing_are_named_with_worker_and_node(self):
        for cause in self.causes_of_two_of_four(LOCAL_RANK="0", LOCAL_WORLD_SIZE="2"):
            self.assertIn("rank 1 (worker 0, node node-a), rank 3 (worker 1, node node-b)", cause)

    def test_a_master_of_an_earlier_attempt_is_left_for_ours(self):
        earlier = self.start(*SMALL, rank=0, world_size=2)
        attempt = {"TRAININGJOB_ATTEMPT": "1"}
        rank1 = self.start(*SMALL, "--steps", 1, rank=1, world_size=2, environment=attempt)
        self.assertEqual(
            rank1.stderr.readline(),
            f"trainer: rank 1 waits for rank 0 at 127.0.0.1:{self.port}: it serves another job or attempt "
            '(ours: uid "", attempt 1; theirs: uid "", attempt 0)\n',
        )
        earlier.kill()
        earlier.wait()
        rank0 = self.start(*SMALL, "--steps", 1, rank=0, world_size=2, environment=attempt)
        for process in (rank0, rank1):
            self.finish(process)

    def namespace_with_hosts(self, hosts):
        """A command that runs another one where `hosts` is /etc/hosts and the only network is lo."""
        as_root = () if os.geteuid() == 0 else ("--map-root-user",)
        prepare = 'ip link set lo up && mount --bind "$0" /etc/hosts && echo ready && exec cat'
        holder = subprocess.Popen(
            ["unshare", *as_root, "--net", "--mount", "sh", "-c", prepare, str(hosts)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.addCleanup(holder.wait)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.stdin.close)  # ends it
        self.assertEqual(holder.stdout.readline(), "ready\n")
        user = ("--user", "--preserve-credentials") if as_root else ()
        return ("nsenter", "--target", str(holder.pid), *user, "--net", "--mount")

    def test_a_name_that_changes_its_address_while_it_is_waited_for(self):
        hosts = self.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n")
        within = self.namespace_with_hosts(hosts)
        environment = {"MASTER_ADDR": "moving-master"}
        start = {"world_size": 2, "environment": environment, "within": within}
        rank1 = self.start(*SMALL, "--steps", 1, rank=1, **start)
        waits = f"trainer: rank 1 waits for rank 0 at moving-master:{self.port}: "
        self.assertRegex(rank1.stderr.readline(), f"^{re.escape(waits)}the name does not resolve")
        hosts.write_text("127.0.0.1 localhost\n10.99.0.1 moving-master\n")  # of a pod that is gone
        self.assertEqual(rank1.stderr.readline(), f"{waits}Network is unreachable\n")
        hosts.write_text("127.0.0.1 localhost\n127.0.0.1 moving-master\n")
        rank0 = self.start(*SMALL, "--steps", 1, rank=0, **start)
        out, _ = self.finish(rank0)
        self.finish(rank1)
        self.assertIn("collectives: Gloo over lo (127.0.0.1): no GPU is visible\n", out)

    def assert_joined_within_a_second(self, join):
        """Of the process that `join` starts last, counted without what a program takes to load. A machine may be too busy for
        it once or twice; a rank that looked less often than it should would never make it."""
        took = []
        while not took or (took[-1] >= 1 and len(took) < 3):
            self.port, self.out = free_port(), self.folder / f"out-{len(took)}"
            took.append(self.seconds_to_join(join()))
        self.assertLess(took[-1], 1, took)

    def test_who_waits_says_for_whom_and_goes_on_within_a_second(self):
        self.assert_joined_within_a_second(self.join_as_third)

    def join_as_third(self):
        rank1 = self.start(*SMALL, "--steps", 1, rank=1, world_size=3)
        self.assertEqual(
            rank1.stderr.readline(), f"trainer: rank 1 waits for rank 0 at 127.0.0.1:{self.port}: Connection refused\n"
        )
        rank0 = self.start(*SMALL, "--steps", 1, rank=0, world_size=3)
        self.assertEqual(
            rank0.stderr.readline(), f"trainer: rank 0 waits for rank 2 of world size 3 at port {self.port}\n"
        )
        rank2 = self.start(*SMALL, "--steps", 1, rank=2, world_size=3)
        for process in (rank0, rank1):
            self.finish(process)
        return rank2

    def start_two_of_three(self):
        """Rank 0 and 1 have met, and wait for rank 2."""
        rank0 = self.start(*SMALL, rank=0, world_size=3)
        rank1 = self.start(*SMALL, rank=1, world_size=3)
        lines = iter(rank0.stderr.readline, "")
        self.assertTrue(any("waits for rank 2 of world size 3" in line for line in lines))
        return rank0, rank1

    STOPPED = "asked to stop by signal 15 before the first step; there is nothing to save"

    def test_a_master_that_is_asked_to_stop_tells_who_waits_with_it(self):
        rank0, rank1 = self.start_two_of_three()
        rank0.terminate()
        self.assertEqual(self.cause(self.finish(rank0, 75)[1]), f"trainer: {self.STOPPED}")
        self.assertEqual(
            self.cause(self.finish(rank1, 69)[1]), f"trainer: rank 1: rank 0 gave up: it was {self.STOPPED}"
        )

    def test_a_rank_that_is_asked_to_stop_tells_those_who_wait_for_others(self):
        rank0, rank1 = self.start_two_of_three()
        rank1.terminate()
        self.assertEqual(self.cause(self.finish(rank1, 75)[1]), f"trainer: {self.STOPPED}")
        self.assertRegex(
            self.cause(self.finish(rank0, 69)[1]), rf"^trainer: rank 0: rank 1 on node \S+ was {self.STOPPED}$"
        )

    def test_rank_0_as_the_last_is_found_within_a_second(self):
        self.assert_joined_within_a_second(self.join_as_rank_0)

    def join_as_rank_0(self):
        rank1 = self.start(*SMALL, "--steps", 1, rank=1, world_size=2)
        self.assertIn("Connection refused", rank1.stderr.readline())
        rank0 = self.start(*SMALL, "--steps", 1, rank=0, world_size=2)
        self.finish(rank1)
        return rank0

    def seconds_to_join(self, process):
        out, _ = self.finish(process)
        return float(re.search(r"joined in ([\d.]+) s", out).group(1))

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", self.port)):
            _, err = self.train(*SMALL, code=69, rank=0, world_size=2)
        self.assertEqual(
            self.cause(err),
            f"trainer: rank 0 can't open the rendezvous: port {self.port}: is already in use on this machine; "
            "another MASTER_PORT is needed",
        )
        self.assertEqual(self.words(0)["reason"], "PortInUse")

    def test_two_world_sizes_are_refused_with_both_values(self):
        flags = (*SMALL, "--rendezvous-timeout-seconds", 60)
        ranks = [self.start(*flags, rank=rank, world_size=size) for rank, size in ((0, 2), (1, 3))]
        for rank in ranks:
            _, err = self.finish(rank, 78)
            self.assertIn(
                "rank 1 was started with WORLD_SIZE 3, rank 0 with 2; it must be the same for all", self.cause(err)
            )

    def wait_until_listening(self):
        deadline = time.monotonic() + self.SECONDS_MAX
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self.port)):
                return
            self.assertLess(time.monotonic(), deadline, "nobody listens")
            threading.Event().wait(0.01)

    def test_another_attempt_is_not_mixed_in(self):
        rank0 = self.start(*SMALL, rank=0, world_size=2, environment={"TRAININGJOB_ATTEMPT": "1"})
        self.wait_until_listening()
        _, err = self.train(*SMALL, "--rendezvous-timeout-seconds", 2, code=69, rank=1, world_size=2)
        self.assertIn("it serves another job or attempt", self.cause(err))
        self.assertIsNone(rank0.poll())

    def test_bad_data_of_one_rank_ends_all_with_its_cause(self):
        empty = self.folder / "empty"
        empty.mkdir()
        ranks = [
            self.start(*SMALL, "--data", data, rank=rank, world_size=2) for rank, data in enumerate((self.data, empty))
        ]
        (_, err0), (_, err1) = (self.finish(rank, 65) for rank in ranks)
        self.assertRegex(self.cause(err0), r"rank 1 on node \S+: --data")
        self.assertIn("is empty", self.cause(err0))
        self.assertIn("is empty", self.cause(err1))


LOST = r"was lost, in phase step after step \d+: .*(closed|reset) by peer.*"


class Loss(EngineTest):
    def kill_one(self, world_size, victim):
        ranks = [self.start(*ENDLESS, rank=rank, world_size=world_size) for rank in range(world_size)]
        for line in ranks[0].stdout:
            if line.startswith("step 3/"):
                break
        else:
            self.fail("no step: " + ranks[0].stderr.read())
        begun = time.monotonic()
        ranks[victim].kill()
        errors = {rank: self.finish(process, 76)[1] for rank, process in enumerate(ranks) if rank != victim}
        self.assertLess(time.monotonic() - begun, 15, "the others should end within seconds")
        for err in errors.values():
            self.assertNotIn("frame #", err)  # a stack of a library's, which may come after the cause
        return {rank: self.cause(err) for rank, err in errors.items()}

    def test_a_killed_rank_1_ends_rank_0_with_its_name(self):
        causes = self.kill_one(2, victim=1)
        self.assertRegex(causes[0], rf"^trainer: rank 0: rank 1 on node \S+ {LOST}$")
        self.assertEqual((self.words(0)["reason"], self.words(0)["rank"]), ("PeerLost", 0))
        self.assertGreaterEqual(self.words(0)["step"], 3)

    def test_a_killed_rank_0_ends_rank_1(self):
        causes = self.kill_one(2, victim=0)
        self.assertRegex(causes[1], r"^trainer: rank 1: rank 0 on node \S+ was lost, in phase step after step \d+")

    def test_of_three_the_killed_one_is_named_by_both_others(self):
        causes = self.kill_one(3, victim=2)
        for rank in (0, 1):
            self.assertRegex(causes[rank], rf"^trainer: rank {rank}: rank 2 on node \S+ {LOST}$")
