"""The forms by hand, on two nodes that are network namespaces: a command for each process, one for each node, and the latter
without a number of the node. All of them are the same training. And processes that begin a minute apart meet.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import nodes
import programs
import training
from support.ports import free_port
from support.processes import environment_of_a_program
from support.waiting import until

SECONDS_MAX = 240
STEPS = 20
NODES, PER_NODE = 2, 2
FAKE_CLOCK = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
CLOCK_SPEED = 15
APART_SECONDS = 60
# Rank 0 says for whom it waits after 5 s, and after 10, 20 and 40 s more (trainer/comm/rendezvous.cc).
SAID_AFTER_75_S = 4


class ByHand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-by-hand-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.data = cls.folder / "text"
        training.write_text(cls.data)
        cls.nodes = nodes.Nodes()
        cls.addClassCleanup(cls.nodes.close)

    def setUp(self):
        self.out = self.folder / self.id().rpartition(".")[2]
        self.port = free_port()

    def start(self, node, *words, **variables):
        """A file takes what it says: nobody reads it while it runs."""
        with tempfile.NamedTemporaryFile("w", dir=self.folder, prefix=f"node-{node}-", delete=False) as log:
            process = subprocess.Popen([*self.nodes.within(node), *map(str, words)], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, env={**environment_of_a_program(), "PATH": os.environ["PATH"], **variables})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.log = pathlib.Path(log.name)
        return process

    def finish(self, *processes):
        for process in processes:
            self.assertEqual(process.wait(SECONDS_MAX), 0, process.log.read_text())

    def train(self, command, places):
        """`command(place)` is what stands before `--` there; the same training behind it."""
        self.finish(*(self.start(node, *command(node, local), "--", *training.words(self.data, self.out, STEPS))
                      for node, local in places))
        return training.bits(self.out, STEPS), training.losses(self.out)

    def each_process(self, node, local):
        return ("trainer", "launch", "--world-size", NODES * PER_NODE, "--gpus-per-node", PER_NODE, "--rank", node * PER_NODE + local,
                "--local-rank", local, "--node-rank", node, "--master-addr", nodes.ADDRESSES[0], "--master-port", self.port)

    def each_node(self, node, _, per_node=PER_NODE):
        return ("trainer", "launch", "--world-size", NODES * per_node, "--gpus-per-node", per_node, "--node-rank", node,
                "--master-addr", nodes.ADDRESSES[0], "--master-port", self.port)

    def master_nodes_gpus(self, *_):
        """The same words on both nodes."""
        return (programs.TJ, "launch", "--master", nodes.ADDRESSES[0], "--nodes", NODES, "--gpus-per-node", PER_NODE, "--port", self.port)

    def test_three_forms_by_hand_are_one_training(self):
        all_processes = [(node, local) for node in range(NODES) for local in range(PER_NODE)]
        all_nodes = [(node, None) for node in range(NODES)]
        found = []
        for form, places in ((self.each_process, all_processes), (self.each_node, all_nodes), (self.master_nodes_gpus, all_nodes)):
            self.out = self.folder / form.__name__
            found.append(self.train(form, places))
            self.assertEqual(len(found[-1][1]), STEPS, form.__name__)
            self.assertEqual(found[-1], found[0], form.__name__)

    def test_processes_that_begin_a_minute_apart_meet(self):
        """By the clock of the first one, which is fast; its limits of a step would be, too."""
        fast = {"LD_PRELOAD": FAKE_CLOCK, "FAKETIME": f"+0 x{CLOCK_SPEED}"}
        words = training.words(self.data, self.out, STEPS, "--limit", "start=0,step=0,eval=0,save=0,silence=0")
        self.assertLess(APART_SECONDS, 5 + 10 + 20 + 40)
        first = self.start(0, *self.each_node(0, None, 1), "--", *words, **fast)

        def waits():
            return re.findall(r"(?m)^trainer: rank 0 waits for .*rank 1 ", first.log.read_text())
        until(SECONDS_MAX, lambda: first.log.read_text(), lambda: len(waits()) >= SAID_AFTER_75_S)
        second = self.start(1, *self.each_node(1, None, 1), "--", *words)
        self.finish(first, second)
        self.assertEqual(len(training.losses(self.out)), STEPS)
