"""One stage on its way: its process, its log, what it used and what it counted."""
import os
import pathlib
import signal
import subprocess
import threading
import time

import budget
import results

STOP_SECONDS_MAX = 20


class Run:
    """`told` is called with this once the process has ended, by a thread of its own."""

    def __init__(self, stage, root, env, slowness, told):
        logs = root / "build" / "test"
        self.stage = stage
        self.slowness = slowness
        self.log_path = logs / f"{stage.name}.log"
        self.junit_path = logs / f"{stage.name}.xml"
        self.ccache_path = logs / f"{stage.name}.ccache"
        self.junit_path.unlink(missing_ok=True)
        self.ccache_path.unlink(missing_ok=True)
        command = stage.command.replace("{junit}", str(self.junit_path))
        self.began = time.monotonic()
        self.timed_out = False
        self.ended = threading.Event()
        self.seconds = self.cpu_seconds = 0.0
        self.exit_code = None
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", command], cwd=root, env={**env, "CCACHE_STATSLOG": str(self.ccache_path)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        threading.Thread(target=self._wait, args=(told,), daemon=True).start()

    def _wait(self, told):
        _, status, usage = os.wait4(self.process.pid, 0)
        self.seconds = time.monotonic() - self.began
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.exit_code = self.process.returncode = os.waitstatus_to_exitcode(status)
        self.ended.set()
        told(self)

    def seconds_left(self):
        """Until it is ended."""
        return budget.seconds_until_end(self.stage, self.slowness.value) - (time.monotonic() - self.began)

    def time_out(self):
        self.timed_out = True
        self.stop()

    def stop(self):
        """Ends the stage with everything it started; the processes share its session."""
        for sig in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sig)
            except ProcessLookupError:
                return
            if self.ended.wait(STOP_SECONDS_MAX):
                return

    def row(self):
        """What it counted and spent."""
        log = self.log_path.read_text(errors="replace")
        counted = results.of_stage(self.stage, log, self.junit_path, self.exit_code)
        if self.timed_out:
            counted.failed.append(f"{self.stage.name}: ended after {self.seconds / 60:.0f} minutes")
        compiled = budget.compiled(self.ccache_path)
        spent = results.Spent(self.seconds, self.cpu_seconds, compiled, budget.was_cold(log, compiled))
        complaint = budget.judge(self.stage, spent, self.slowness)
        if complaint:
            counted.failed.append(complaint)
        return results.Row(self.stage.name, spent, counted)
