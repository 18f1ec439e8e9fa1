"""What a run tells others: /progress and /metrics, the bar on a terminal, logs, events, the ledger."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from engine import ENGINE, EngineTest, free_port

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 8)
ENDLESS = (*SMALL, "--steps", 1_000_000, "--log-every", 50)
ANSWER_SECONDS_MAX = 10


class ReportTest(EngineTest):
    def setUp(self):
        super().setUp()
        self.window = free_port()

    def get(self, path="/progress"):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.window}{path}", timeout=ANSWER_SECONDS_MAX) as answer:
            return answer.read().decode()

    def until(self, process, condition):
        """Asks /progress until the condition holds for the answer."""
        deadline = time.monotonic() + self.SECONDS_MAX
        while time.monotonic() < deadline:
            if process.poll() is not None:
                self.fail(f"it has ended: {process.communicate()}")
            try:
                document = json.loads(self.get())
                if condition(document):
                    return document
            except (urllib.error.URLError, ConnectionError):
                pass
            select.select([], [], [], 0.02)
        self.fail("no such answer")

    def quiet(self, *flags, **start):
        """A run whose lines nobody waits for."""
        return self.start(*flags, "--progress-port", self.window, **start)


class Window(ReportTest):
    def test_progress_and_metrics_while_it_trains(self):
        run = self.quiet(*ENDLESS, "--save-every", 5, "--peak-tflops", 0.5)
        document = self.until(run, lambda seen: seen.get("lastCheckpoint") and seen["step"] > 6)
        self.assertEqual((document["phase"] in ("step", "save"), document["steps"], document["attempt"]), (True, 1_000_000, 0))
        self.assertLess(document["heartbeatAgeSeconds"], 5)
        self.assertGreater(document["etaSeconds"], 60)
        self.assertTrue(0 < document["mfu"] < 1)
        self.assertRegex(document["lastCheckpoint"]["path"], r"/out/step-\d{6}$")
        values = dict(line.rsplit(" ", 1) for line in self.get("/metrics").splitlines() if not line.startswith("#"))
        self.assertGreaterEqual(float(values["trainer_step"]), document["step"])
        self.assertGreater(float(values['trainer_goodput_seconds_total{kind="compute"}']), 0)
        self.assertEqual(float(values["trainer_tokens_total"]), float(values["trainer_step"]) * 8 * 32)

    def test_it_answers_while_ranks_are_missing(self):
        run = self.quiet(*ENDLESS, rank=0, world_size=2)
        early = self.until(run, lambda seen: True)
        self.assertEqual((early["phase"], early["step"]), ("start", 0))
        self.until(run, lambda seen: seen["heartbeatAgeSeconds"] > early["heartbeatAgeSeconds"] + 0.2)

    def test_it_answers_while_the_training_is_stuck(self):
        ranks = [self.quiet(*ENDLESS, rank=rank, world_size=2) for rank in range(2)]
        self.until(ranks[0], lambda seen: seen["step"] > 2)
        ranks[1].send_signal(signal.SIGSTOP)
        stuck = self.until(ranks[0], lambda seen: seen["heartbeatAgeSeconds"] > 2)
        self.assertEqual(self.until(ranks[0], lambda seen: True)["step"], stuck["step"])
        ranks[1].send_signal(signal.SIGCONT)

    def test_a_port_that_is_taken_costs_a_line(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", self.window))
            taken.listen()
            out, err = self.train(*SMALL, "--steps", 2, "--progress-port", self.window)
        wanted = f"no /progress and no /metrics: port {self.window}: Address already in use"
        self.assertEqual(err.strip(), wanted)
        self.assertIn("finished 2 steps", out)

    def test_bad_clients_get_little(self):
        run = self.quiet(*ENDLESS)
        self.until(run, lambda seen: True)
        silent = [socket.create_connection(("127.0.0.1", self.window)) for _ in range(40)]
        for client in silent:
            self.addCleanup(client.close)
        silent[0].settimeout(ANSWER_SECONDS_MAX)
        self.assertEqual(silent[0].recv(1), b"", "the end, after its time")
        with socket.create_connection(("127.0.0.1", self.window), timeout=4 * ANSWER_SECONDS_MAX) as greedy:
            try:
                greedy.sendall(b"GET /progress HTTP/1.1\r\nX: " + b"y" * 100_000)
                self.assertEqual(greedy.recv(1), b"")
            except ConnectionError:
                pass
        self.assertIn('"step"', self.get())
        for path, code in (("/", 404), ("/progress/x", 404)):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.get(path)
            self.assertEqual(refused.exception.code, code)
            refused.exception.close()

    def test_in_a_job_the_port_is_the_known_one(self):
        out, _ = self.train(*SMALL, "--steps", 1, environment={"TRAININGJOB_NAME": "job", "TRAININGJOB_ATTEMPT": "0"})
        self.assertRegex(out, r"(?m)^progress +(127\.0\.0\.1:29600 +default in a job|off +computed: port 29600: .*)$")
        out, _ = self.train(*SMALL, "--steps", 1, "--out", self.folder / "other")
        self.assertRegex(out, r"(?m)^progress +off +computed: not in a job$")


class Lines(ReportTest):
    def on_a_terminal(self, **environment):
        main, terminal = pty.openpty()
        command = [ENGINE, "train", "--data", str(self.data), "--out", str(self.out), *map(str, SMALL), "--steps", "5", "--save-every", "2"]
        process = subprocess.Popen(command, env=self.environment(0, 1, TERM="xterm", **environment), stdout=terminal,
                                   stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        os.close(terminal)
        text = b""
        while True:
            try:
                text += os.read(main, 65536)
            except OSError:  # the other side is closed
                break
        os.close(main)
        self.assertEqual(process.wait(), 0)
        return text.decode()

    def test_a_terminal_has_a_bar_below_the_lines(self):
        text = self.on_a_terminal()
        bars = re.findall(r"\r\x1b\[K\[\x1b\[32m#*\x1b\[0m-*\] (\d)/5 \| loss \d\.\d{4} \| \d+ tok/s(?: \| eta (\d+:\d\d))?", text)
        self.assertEqual([step for step, _ in bars][:1], ["1"])
        self.assertEqual({step for step, _ in bars}, {"1", "2", "3", "4", "5"})
        self.assertTrue(all(eta for step, eta in bars if step in "234"))
        self.assertRegex(text, r"\r\x1b\[Kcheckpoint \S+/step-000002 \| stall")
        self.assertEqual(re.findall(r"(?:\n|\x1b\[K)step (\d)/5", text), ["1", "5"])
        self.assertRegex(text, r"\r\x1b\[Kgoodput \d")
        self.assertNotIn("[", text[text.index("goodput") :])

    def test_no_color_is_respected(self):
        text = self.on_a_terminal(NO_COLOR="1")
        self.assertNotIn("\x1b[32m", text)
        self.assertRegex(text, r"\r\x1b\[K\[#+-*\] 3/5")

    def test_each_rank_keeps_a_log_over_all_attempts(self):
        self.train_ranks(2, *SMALL, "--steps", 2)
        self.train_ranks(2, *SMALL, "--steps", 4, "--resume")
        for rank in range(2):
            text = (self.out / "logs" / f"rank-{rank}.log").read_text()
            for line in text.splitlines():
                self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
            self.assertEqual(len(re.findall(rf"Z attempt 0, rank {rank} of 2 on node \S+: begins\n", text)), 2)
            self.assertIn(f"Z rank {rank}/2 joined in", text)
        self.assertIn("Z step 4/4 | loss", (self.out / "logs" / "rank-0.log").read_text())

    def test_logs_and_events_can_be_elsewhere_or_off(self):
        self.train(*SMALL, "--steps", 1, "--tensorboard", "off", "--log-dir", self.folder / "logs")
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), ["ledger.json", "metrics.jsonl", "step-000001"])
        self.assertIn("step 1/1", (self.folder / "logs/rank-0.log").read_text())

    def test_a_disk_that_takes_no_reports_stops_nobody(self):
        (self.folder / "file").write_text("")
        out, _ = self.train(*SMALL, "--steps", 1, "--tensorboard", self.folder / "file/x", "--log-dir", self.folder / "file/y")
        self.assertRegex(out, r"(?m)^tensorboard +none +computed: .*file/x/events.*: can't be made: Not a directory$")
        self.assertRegex(out, r"(?m)^rank logs +none +computed: .*file/y/rank-0.log: can't be written: Not a directory$")

    def test_the_mfu_needs_a_peak(self):
        out, _ = self.train(*SMALL, "--steps", 2)
        self.assertRegex(out, r"(?m)^mfu +unknown peak +computed: tok/s x \S+ FLOP \(6 x parameters")
        self.assertNotRegex(out, r"mfu \d")
        out, _ = self.train(*SMALL, "--steps", 2, "--peak-tflops", 1, "--out", self.folder / "other")
        self.assertRegex(out, r"(?m)^step 2/2 .* \| mfu \d\.\d %$")


class Ledger(ReportTest):
    def test_it_sums_to_the_time_of_a_run_that_was_killed(self):
        begun = time.monotonic()
        run = self.quiet(*ENDLESS, "--save-every", 40)
        reached = self.until(run, lambda seen: seen.get("lastCheckpoint") and seen["step"] % 40 > 20)["step"]
        run.kill()
        run.wait()
        select.select([], [], [], 0.5)  # a gap that must be found again
        out, _ = self.train(*SMALL, "--save-every", 40, "--steps", reached + 100, "--resume")
        took = time.monotonic() - begun
        ledger = json.loads((self.out / "ledger.json").read_text())
        # Two programs start unseen, slowly on a busy machine; the gap would show.
        self.assertAlmostEqual(ledger["total_seconds"], took, delta=0.01 * took + 0.4)
        self.assertAlmostEqual(sum(ledger["seconds"].values()), ledger["total_seconds"], places=6)
        self.assertGreater(ledger["seconds"]["lost"], 0.5)
        self.assertTrue(ledger["finished"])
        self.assertRegex(out.strip().splitlines()[-1], r"^goodput \d+\.\d % of \d+\.\d s \| compute .* \| lost \d")
        kinds = [event["event"] for event in self.events() if event["event"] not in ("checkpoint", "interference")]
        self.assertEqual(kinds, ["begin", "resume", "end", "ledger"])

    def test_it_names_how_a_run_ended(self):
        run = self.quiet(*ENDLESS)
        self.until(run, lambda seen: seen["step"] > 2)
        run.send_signal(signal.SIGTERM)
        self.finish(run, 75)
        stop = [event for event in self.events() if event["event"] == "stop"]
        self.assertEqual([(event["exit_code"], event["reason"]) for event in stop], [(75, "Interrupted")])
        self.assertEqual(self.events()[-1]["event"], "ledger")
        self.train(*SMALL, "--steps", 1_000_000, "--resume", "--lr", 1e9, code=78)
        self.assertEqual([event["reason"] for event in self.events() if event["event"] == "failure"], ["LossNotFinite"])

    def test_a_ledger_that_is_none_begins_anew(self):
        self.train(*SMALL, "--steps", 2)
        (self.out / "ledger.json").write_text('{"attempt":')
        self.train(*SMALL, "--steps", 4, "--resume")
        ledger = json.loads((self.out / "ledger.json").read_text())
        self.assertEqual(ledger["seconds"]["lost"], 0)

    def test_waiting_for_others_is_no_goodput(self):
        ranks = [self.quiet(*ENDLESS, rank=rank, world_size=2) for rank in range(2)]
        self.until(ranks[0], lambda seen: seen["step"] > 2)
        ranks[1].send_signal(signal.SIGSTOP)
        self.until(ranks[0], lambda seen: seen["heartbeatAgeSeconds"] > 2)
        ranks[1].send_signal(signal.SIGCONT)
        ranks[1].send_signal(signal.SIGTERM)
        self.finish(ranks[0], 75)
        ledger = json.loads((self.out / "ledger.json").read_text())
        self.assertGreater(ledger["seconds"]["communication"], 2)


if __name__ == "__main__":
    unittest.main()
