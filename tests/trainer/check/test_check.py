"""`trainer check` as a person runs it: one worker, two workers in networks of their own, and what goes wrong there.

What it prints is golden text in tests/golden/check, with sizes and times replaced; TJ_UPDATE_GOLDEN=1 writes it anew.
Needs root: network and mount namespaces.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [str(folder) for folder in pathlib.Path(__file__).resolve().parents[1:3]]
import nodes  # noqa: E402
from support.processes import ProcessTest, environment_of_a_program  # noqa: E402

ENGINE = pathlib.Path(os.environ["TJ_ENGINE"])
TRAINER = ENGINE.with_name("trainer")
GOLDEN = pathlib.Path(__file__).resolve().parent.parent.parent / "golden" / "check"
TEXT = "the quick brown fox jumps over the lazy dog and runs away. " * 400
FAKE_CLOCK = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
PORT = 29500  # free in a network of its own

VARYING = (
    (r"\d+(\.\d+)?(e\+\d+)? (bytes|kB|MB|GB|TB)/s", "RATE"),
    (r"\d+(\.\d+)?(e\+\d+)? (bytes|kB|MB|GB|TB) free of .*", "SIZE free"),
    (r"\d+(\.\d+)?(e\+\d+)? (bytes|kB|MB|GB|TB)\b", "SIZE"),
    (r"\d+(\.\d+)?(e\+\d+)? (us|ms|s|min|h)\b", "TIME"),
    (r"\d+ cores?\b", "CORES"),
    (r"\d+ %", "SHARE"),
    (r"build [0-9a-f]{12}", "build ID"),
    (r"has [0-9a-f]{12}", "has ID"),
    (r"/tmp/tj-check-[^/\s]+", "FOLDER"),
)


def normalised(text):
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text)
    return text


class CheckTest(ProcessTest):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-check-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, *flags, within=(), program=TRAINER, command="check", **variables):
        words = {"TRAININGJOB_TERMINATION_LOG": str(self.folder / "words")}
        return self.spawn([*within, program, command, *map(str, flags)], environment_of_a_program(**(words | variables)))

    def check(self, *flags, code=0, **start):
        return self.finish(self.start(*flags, **start), code)[0]

    def expect_golden(self, name, text):
        path = GOLDEN / f"{name}.txt"
        text = normalised(text)
        if os.environ.get("TJ_UPDATE_GOLDEN"):
            path.write_text(text)
        self.assertEqual(text, path.read_text())


class OneWorker(CheckTest):
    def alone(self, *flags, code=0, within=()):
        return self.check(*flags, code=code, within=within, NODE_NAME="node-a")

    def rows(self, check, out):
        """Lines of one check, with the advice below them."""
        lines = iter(out.splitlines())
        found = []
        for line in lines:
            if re.match(rf"\w+ +{check} ", line):
                found.append(line)
            elif found and line.startswith("       "):
                found.append(line)
            elif found:
                break
        return "\n".join(found)

    def test_a_healthy_worker(self):
        """With a disk in memory, as the machine's own may be slow. Nothing is left on it."""
        disk = self.folder / "disk"
        disk.mkdir()
        on_a_fast_disk = 'mount -t tmpfs -o size=2g tmpfs "$0" && "$@" && test -z "$(ls -A "$0")"'
        data = self.folder / "data"
        data.mkdir()
        (data / "a.txt").write_text(TEXT)
        out = self.alone("--data", data, "--out", disk / "out", within=("unshare", "--mount", "sh", "-c", on_a_fast_disk, str(disk)))
        self.expect_golden("one-worker", out)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir() if path.name != "words"), ["data", "disk"])

    def test_shared_memory_of_64_mb(self):
        small = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
        out = self.alone(within=("unshare", "--mount", "sh", "-c", small, "sh"))
        self.assertIn("67 MB in /dev/shm", out)
        self.expect_golden("small-shm", self.rows("shared memory", out) + "\n" + out.splitlines()[-1] + "\n")

    def test_a_memlock_limit(self):
        out = self.alone(within=("prlimit", "--memlock=65536:65536"))
        self.assertIn("66 kB", self.rows("memlock limit", out))

    def test_a_full_disk(self):
        place = self.folder / "full"
        place.mkdir()
        full = 'mount -t tmpfs -o size=1m tmpfs "$0" && { cat /dev/zero > "$0/zeros" 2>&-; exec "$@"; }'
        out = self.alone("--out", place, code=78, within=("unshare", "--mount", "sh", "-c", full, str(place)))
        self.expect_golden("full-disk", self.rows("checkpoint folder", out) + "\n" + out.splitlines()[-1] + "\n")

    def test_gpus_of_amd_are_said_by_the_check_and_by_a_training(self):
        """A /dev of its own, with the node of AMD's driver in it."""
        with_kfd = ('mount -t tmpfs tmpfs "$0" && cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom "$0" && '
                    'mkdir "$0/shm" && touch "$0/kfd" && mount --bind "$0" /dev && exec "$@"')
        place = self.folder / "dev"
        place.mkdir()
        within = ("unshare", "--mount", "sh", "-c", with_kfd, str(place))
        rows = self.rows("AMD GPUs", self.alone(within=within))
        self.assertRegex(rows, r"^warn +AMD GPUs +worker 0 \(node-a\) +(\d+ )?GPUs? of AMD \(/dev/kfd\)\n +this build computes on GPUs by CUDA and NCCL")
        data = self.folder / "data"
        data.mkdir()
        (data / "a.txt").write_text(TEXT)
        out = self.check("--data", data, "--out", self.folder / "out", "--layers", 1, "--width", 16, "--heads", 2, "--steps", 1,
                         within=within, program=ENGINE, command="train")
        self.assertRegex(out, r"(?m)^AMD GPUs +(\d+ )?GPUs? of AMD \(/dev/kfd\) +not used: this build .* nothing for ROCm$")
        self.assertRegex(out, r"(?m)^collectives: none, a single rank: no GPU of NVIDIA is visible; there are (\d+ )?GPUs? of AMD")

    def memory(self, *flags, code=0):
        """Of two ranks on one machine or on two, of a model that takes a few megabytes."""
        flags = ("--model", "gpt2-nano", "--batch-size", 32, *flags, "--", "--vocabulary", 257)
        return self.rows("memory of a rank", self.alone(*flags, code=code))

    def test_the_memory_of_a_rank(self):
        self.assertRegex(self.memory(), r"pass +memory of a rank .* needs \S+ MB of ")

    def test_a_model_that_does_not_fit(self):
        row = self.rows("memory of a rank", self.alone("--model", "gpt2-small", "--batch-size", 32, "--", "--vocabulary", 50257,
                                                       "--gpu-memory", "2GiB", "--no-passes", code=78))
        self.assertRegex(row, r"fatal +memory of a rank .* a rank needs \S+ GB .*, and has 2.1 GB of a GPU")

    def test_flags_that_can_not_be_planned(self):
        row = self.memory("--zero", 7, code=78)
        self.assertIn("--zero", row)

    def test_data_is_read_with_the_models_own_flags(self):
        """nanoGPT's files don't say how many tokens there are."""
        data = self.folder / "tokens.bin"
        data.write_bytes(bytes(2048))
        for flags, code, wanted in (((), 78, r"(?s)^fatal +--data .*--vocabulary"),
                                    (("--", "--vocabulary", 257, "--no-passes"), 0, r"^pass +--data .* 1,024 tokens")):
            self.assertRegex(self.rows("--data", self.alone("--data", data, *flags, code=code)), wanted)

    def test_paths_that_are_missing(self):
        process = self.start(
            "--data", self.folder / "data", "--init-from", self.folder / "gpt2", NODE_NAME="node-a",
            MODEL_PATH=str(self.folder), DATA_ROOT=str(self.folder / "root"),
        )
        out, _ = self.finish(process, 78)
        parts = [self.rows(check, out) for check in ("--data", "--init-from", r"MODEL_PATH \(path\)", r"DATA_ROOT \(path\)")]
        self.expect_golden("missing-paths", "\n".join([*parts, out.splitlines()[-1], ""]))

    def test_variables_that_contradict(self):
        out = self.check("--rendezvous-timeout-seconds", 1, code=78, WORLD_SIZE="2", RANK="2", MASTER_ADDR="a", MASTER_PORT="1")
        self.assertRegex(out, r"(?m)^fatal  variables .*RANK: is 2 with WORLD_SIZE 2; it must be from 0 to 1$")

    def test_settings_of_nccl(self):
        out = self.check(NODE_NAME="node-a", NCCL_TIMEOUT="10800", NCCL_IB_TIMEOUT="22")
        self.assertIn("nothing reads it", self.rows("NCCL settings", out))
        self.assertTrue(out.endswith("warn: 1 thing to look at; training can begin\n"), out)

    def test_json_is_one_document(self):
        document = json.loads(self.alone("--json"))
        self.assertEqual((document["result"], document["exit_code"], document["world_size"]), ("pass", 0, 1))
        self.assertIn("shared memory", [finding["check"] for finding in document["findings"]])

    def test_two_processes_of_one_worker(self):
        document = json.loads(self.check("--json", "--nproc", 2))
        self.assertEqual((document["workers"], document["world_size"]), (1, 2))
        self.assertGreater(document["measured"]["all_reduce"]["bytes_per_second"], 1e6)
        self.assertLess(abs(document["measured"]["ranks"][0]["clock_offset_seconds"]), 0.5)

    def test_a_trainer_without_its_engine(self):
        alone = self.folder / "trainer"
        shutil.copy(TRAINER, alone)
        self.assertRegex(self.check(code=78, program=alone), r"(?m)^fatal  engine .*no such file")


class Pair(CheckTest):
    """Two workers, each in a network of its own with eth0; node-a is 10.0.0.1, node-b 10.0.0.2."""

    def setUp(self):
        super().setUp()
        self.nodes = nodes.Nodes()
        self.addCleanup(self.nodes.close)

    def within(self, node):
        return self.nodes.within(node)

    def shell(self, node, script):
        self.nodes.run(node, script)

    def start_node(self, node, *flags, **more):
        variables = {
            "WORLD_SIZE": "2", "RANK": str(node), "MASTER_ADDR": nodes.ADDRESSES[0], "MASTER_PORT": str(PORT),
            "NODE_NAME": f"node-{'ab'[node]}", **more,
        }
        return self.start(*flags, within=self.within(node), **variables)

    def check_pair(self, *flags, codes=(0, 0)):
        pair = [self.start_node(node, *flags) for node in (0, 1)]
        return [self.finish(process, code)[0] for process, code in zip(pair, codes)]

    def slow(self, rate):
        for node in (0, 1):
            self.shell(node, f"tc qdisc add dev eth0 root tbf rate {rate} burst 128kb latency 50ms")

    def test_a_healthy_pair(self):
        """But for bandwidth and latency: a busy machine may move less than half of the 10 Gb/s that a veth promises, and answer late."""
        first, second = self.check_pair()
        bandwidth = r"(pass|warn)   all-reduce +all ranks +\S+ \S+ each way \(Gloo, \S+ MB in [^)]*\)\n.*\n"
        self.assertRegex(first, bandwidth)
        latency = r"(pass|warn)   latency +all ranks +round trip at most \S+ \S+ \(rank 0 \(node-a\) and rank 1 \(node-b\)\)\n( .*\n)?"
        self.assertRegex(first, latency)
        memory = r"(?m)^pass   memory .*\n"  # one row or two: each worker has its own number
        self.assertRegex(first, memory)
        result = r"\n.*training can begin\n$"
        text = first
        for varying in (bandwidth, latency, memory, result):
            text = re.sub(varying, "", text)
        self.expect_golden("pair", text)
        self.assertRegex(second, r"^worker 1 \(node-b\): .*training can begin; the table is printed by rank 0\n$")

    def test_a_link_far_below_its_promise(self):
        self.slow("200mbit")
        first, _ = self.check_pair()
        self.expect_golden("slow-link", self.faults(first))

    def test_no_route_from_the_other(self):
        self.shell(1, "ip addr flush dev eth0")
        first, second = self.check_pair("--rendezvous-timeout-seconds", 2, codes=(69, 69))
        self.expect_golden("no-route", f"node-a\n{self.faults(first)}\nnode-b\n{self.faults(second)}")

    def test_a_blocked_port(self):
        self.shell(0, f"ip rule add ipproto tcp sport {PORT} blackhole")  # no answer comes back
        first, second = self.check_pair("--rendezvous-timeout-seconds", 3, codes=(69, 69))
        self.expect_golden("blocked-port", f"node-a\n{self.faults(first)}\nnode-b\n{self.faults(second)}")

    def test_all_ports_but_the_masters_blocked(self):
        for ports in (f"1024-{PORT - 1}", f"{PORT + 1}-65534"):
            self.shell(0, f"ip rule add ipproto tcp sport {ports} blackhole")
        outs = self.check_pair("--rendezvous-timeout-seconds", 3, codes=(69, 69))
        # On a busy machine one may have begun to wait long before the other, and have told it.
        told = r"rank \d on node node-\w failed first, in phase start: rank \d waited \d+ s for connections to the other ranks"
        waited = [out for out in outs if not re.search(told, out)]
        self.assertTrue(waited, outs)
        if len(waited) == 2:
            self.expect_golden("blocked-ports", f"node-a\n{self.faults(outs[0])}\nnode-b\n{self.faults(outs[1])}")
        self.assertRegex(waited[0], "all have come to rank 0, but not all can reach each other")

    def test_an_interface_that_is_not_there(self):
        process = self.start_node(0, "--rendezvous-timeout-seconds", 2, GLOO_SOCKET_IFNAME="ib0")
        out, _ = self.finish(process, 78)
        self.expect_golden("no-interface", self.faults(out))

    def test_an_interface_that_leads_elsewhere(self):
        for node in (0, 1):
            self.shell(node, "ip link add docker0 type veth peer name docker1 && ip link set docker1 up && "
                             "ip addr add 172.17.0.1/16 dev docker0 && ip link set docker0 up")
        flags = ("--rendezvous-timeout-seconds", 3)
        pair = [self.start_node(node, *flags, GLOO_SOCKET_IFNAME="docker0") for node in (0, 1)]
        outs = [self.finish(process, 69)[0] for process in pair]
        unmet = r"(?m)^retry  (rendezvous|engine) .*\n"  # which of Gloo's connections fails first is chance
        for out in outs:
            self.assertRegex(out, unmet)
        texts = [re.sub(unmet, "", self.faults(out)) for out in outs]
        self.expect_golden("wrong-interface", f"node-a\n{texts[0]}\nnode-b\n{texts[1]}")

    def test_a_port_in_use(self):
        script = f"import socket; s = socket.create_server(('', {PORT})); print('ready', flush=True); import sys; sys.stdin.read()"
        taker = subprocess.Popen([*self.within(0), sys.executable, "-c", script],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(taker.wait)
        self.addCleanup(taker.stdout.close)
        self.addCleanup(taker.stdin.close)
        self.assertEqual(taker.stdout.readline(), "ready\n")
        out, _ = self.finish(self.start_node(0, "--rendezvous-timeout-seconds", 2), 69)
        self.expect_golden("port-in-use", self.faults(out))

    def test_a_clock_that_is_half_a_minute_ahead(self):
        """Of the machine only: what measures durations is not moved."""
        ahead = {"LD_PRELOAD": FAKE_CLOCK, "FAKETIME": "+30s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        pair = [self.start_node(0), self.start_node(1, **ahead)]
        first, _ = (self.finish(process)[0] for process in pair)
        self.assertRegex(first, r"(?m)^warn +clocks .*rank 1 \(node-b\) is (29\.9|30)\S* s ahead of rank 0 \(node-a\)$")

    def test_two_builds(self):
        other = self.folder / "other"
        other.mkdir()
        shutil.copy(TRAINER, other)
        build = json.loads(self.check("--json", within=self.within(0)))  # the first that shows the id
        text = next(f["found"] for f in build["findings"] if f["check"] == "versions")
        self.assertRegex(text, r"trainer \d+\.\d+\.\d+, libtorch 2\.\d+\.\d+, build [0-9a-f]{12}$")
        whole = ENGINE.read_bytes()
        at = whole.index(bytes.fromhex(text.rsplit(" ", 1)[1]))
        (other / "trainer-engine").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        (other / "trainer-engine").chmod(0o755)
        pair = [self.start_node(0), self.start_node(1, program=other / "trainer")]
        out, _ = self.finish(pair[0])
        self.finish(pair[1])
        versions = [line for line in normalised(out).splitlines() if re.match(r"\w+ +versions ", line)]
        self.assertEqual(len(versions), 1)
        self.assertRegex(versions[0], r"^warn .*build ID at worker 0 \(node-a\), but worker 1 \(node-b\) has ID$")

    def test_sigterm_ends_it_with_its_engine(self):
        process = self.start_node(1)
        self.assertIn("waits for rank 0", process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        self.finish(process, 75)
        left = subprocess.run(["pgrep", "-f", "trainer-engine check", "--nslist", "net", "--ns", str(self.nodes.holders[1].pid)],
                              stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(left.stdout, "")

    def test_the_estimate_is_what_training_gets(self):
        """Within 15 %: the all-reduce of a step, as the difference to a step of one rank alone. The wire is slow and the model
        small, so that others who want the cores change little of it, and an estimate that is wrong stays so."""
        self.slow("50mbit")
        errors = []
        while not errors or (errors[-1] >= 0.15 and len(errors) < 3):
            errors.append(abs(self.predicted_by_measured(self.folder / str(len(errors))) - 1))
        self.assertLess(errors[-1], 0.15, errors)

    def predicted_by_measured(self, folder):
        folder.mkdir()
        document = json.loads(self.check_pair("--json")[0])
        rate = document["measured"]["all_reduce"]["bytes_per_second"]
        data = folder / "data"
        data.mkdir()
        (data / "a.txt").write_text(TEXT)
        shape = ("--data", data, "--layers", 4, "--width", 192, "--heads", 6, "--seq-len", 16, "--threads", 1)

        def train(node, batch, world_size):
            return self.start(
                *shape, "--batch-size", batch, "--steps", 7, "--out", folder / f"out-{world_size}-{node}",
                program=ENGINE, command="train", within=self.within(node), WORLD_SIZE=str(world_size), RANK=str(node),
                MASTER_ADDR="10.0.0.1", MASTER_PORT=str(PORT), NODE_NAME=f"node-{node}",
            )

        def seconds(world_size):
            lines = (folder / f"out-{world_size}-0" / "metrics.jsonl").read_text().splitlines()
            steps = [line["seconds"] for line in map(json.loads, lines) if "loss" in line]
            return sorted(steps[2:])[len(steps[2:]) // 2]

        self.finish(train(0, 1, 1))
        for process in [train(node, 2, 2) for node in (0, 1)]:
            self.finish(process)
        model = next((folder / "out-1-0").glob("step-*")) / "model.safetensors"
        predicted = model.stat().st_size / rate  # 2(N-1)/N is 1 for a pair
        measured = seconds(2) - seconds(1)
        print(f"all-reduce of a step: predicted {predicted:.3f} s, measured {measured:.3f} s", file=sys.stderr)
        return predicted / measured

    @staticmethod
    def faults(out):
        """What is not well, with the advice below it, and the result."""
        kept, is_fault = [], False
        for line in out.splitlines():
            if not line.startswith("       "):
                is_fault = not line.startswith("pass ") and line != ""
            if is_fault:
                kept.append(line)
        return "\n".join([*kept, ""])


if __name__ == "__main__":
    unittest.main()
