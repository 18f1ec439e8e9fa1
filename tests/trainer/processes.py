"""A test that starts programs: whatever happens, none of them outlives it."""

import os
import subprocess
import unittest

# By which tests/trainer/cpus chooses torch's kernels.
KERNEL_CHOICE = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "OMP_WAIT_POLICY")


def environment_of_a_program(*names, **more):
    """Nothing of the caller's own but what a program needs to be found and to run."""
    kept = ("PATH", "HOME", "LD_LIBRARY_PATH", *KERNEL_CHOICE, *names)
    threads = {"OMP_NUM_THREADS": os.environ.get("TJ_TEST_THREADS", "1")}
    return {name: os.environ[name] for name in kept if name in os.environ} | threads | more


class ProcessTest(unittest.TestCase):
    SECONDS_MAX = 240  # of one run; a build machine may be busy

    def spawn(self, command, environment, **popen):
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen
        )
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def finish(self, process, code=0):
        """Waits, and returns (stdout, stderr) after a check of the exit code."""
        out, err = process.communicate(timeout=self.SECONDS_MAX)
        self.assertEqual(process.returncode, code, f"stdout:\n{out}\nstderr:\n{err}")
        return out, err
