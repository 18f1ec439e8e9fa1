"""`trainer prepare` on much text: however many workers it has and however often it is killed, the bytes are the same.

usage: prepare_test.py TRAINER [--megabytes N] [--workers N,N...] [--kills N] [--seed N] [--check-memory]

The short run is part of the tests. The long one, with what docs/data.md says of memory checked:
  prepare_test.py build/dev/trainer/trainer --megabytes 1000 --workers 2 --part-mib 8 --kills 3 --check-memory
"""

import argparse
import filecmp
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

GPT2 = pathlib.Path(__file__).resolve().parent / "gpt2"
DOCUMENTS_MAX = 20_000  # different ones; larger texts repeat them in random order
WORDS_MAX = 50_000
SECONDS_MAX = 3600
ATTEMPTS_MAX = 10
CACHE_MB = 8.4  # docs/data.md, Memory
PROGRAM_MB = 30  # what the program has without a part in hand
TOKEN_BYTES = 2


def words(dice):
    """Many, of several scripts, few of them common."""
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    latin = ["".join(dice.choices(letters, k=dice.randrange(1, 12))) for _ in range(WORDS_MAX)]
    chinese = ["".join(chr(dice.randrange(0x4E00, 0x9FA5)) for _ in range(dice.randrange(2, 12))) for _ in range(WORDS_MAX)]
    return latin + chinese + ["don't", "2026", "😀", "  ", "naïve", "x" * 40] * 100


def write_text(folder, size, dice):
    """JSON lines in three files, some of them long."""
    known = words(dice)
    documents = []
    for number in range(min(DOCUMENTS_MAX, size // 2000 + 100)):
        count = dice.choice((5, 50, 500, 1500))
        text = " ".join(known[int(dice.paretovariate(0.6)) % len(known)] for _ in range(count))
        documents.append(('{"id": %d, "text": "%s\\n"}\n' % (number, text)).encode())
    for number in range(3):
        with open(folder / f"{number}.jsonl", "wb") as file:
            while file.tell() < size // 3:
                file.writelines(dice.choices(documents, k=200))
    return max(map(len, documents))


def content(folder):
    return sorted(path.name for path in folder.iterdir())


def differences(left, right):
    """Names of files that are not the same in both folders."""
    if content(left) != content(right):
        return sorted(set(content(left)) ^ set(content(right)))
    _, changed, unreadable = filecmp.cmpfiles(left, right, content(left), shallow=False)
    return changed + unreadable


class Prepare:
    """One command; its folder of tokens is what `output` names."""

    def __init__(self, options, text, output, workers):
        self.output = output
        self.command = [options.trainer, "prepare", "--input", text, "--output", output, "--tokenizer", "gpt2-bpe",
                        "--vocabulary", GPT2, "--workers", workers, "--val", "10%",
                        "--part-mib", options.part_mib]

    def start(self):
        self.log = self.output.with_suffix(".log")
        with open(self.log, "w", encoding="utf-8") as log:
            return subprocess.Popen(list(map(str, self.command)), stdout=log, stderr=subprocess.STDOUT)

    def run(self):
        """To the end: (seconds, cores in use, most memory in MB)."""
        begun = time.monotonic()
        process = self.start()
        most_kb, done = 0, 0
        while not done:
            # Not ru_maxrss: it counts what this very process had when it started the other.
            found = re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path(f"/proc/{process.pid}/status").read_text())
            most_kb = max(most_kb, int(found.group(1)) if found else 0)
            time.sleep(0.02)
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begun
        if process.returncode != 0:
            sys.exit(f"exit code {process.returncode}: {self.log.read_text()}")
        return seconds, (usage.ru_utime + usage.ru_stime) / seconds, most_kb * 1.024 / 1000

    def refused(self, bytes_max):
        """What it says where no file may be larger (ulimit -f)."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, bytes_max))

        ended = subprocess.run(list(map(str, self.command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=limit,
                               timeout=SECONDS_MAX, check=False)
        assert ended.returncode == 74, f"exit code {ended.returncode}: {ended.stderr}"
        return ended.stderr.strip()

    def killed(self, after_seconds):
        """True when it was still alive to be killed."""
        process = self.start()
        try:
            process.wait(after_seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        if process.wait(SECONDS_MAX) not in (0, -signal.SIGKILL):
            sys.exit(f"exit code {process.returncode}: {self.log.read_text()}")
        return process.returncode != 0


def memory_bound_mb(workers, part_mib, record_bytes):
    part, record = part_mib * 1.048576, record_bytes / 1e6
    return PROGRAM_MB + workers * ((1 + TOKEN_BYTES) * (part + record) + 2 * record + CACHE_MB)


def compare_workers(options, text, folder, record_bytes):
    """Each number of workers gives the bytes of the first: (its folder, seconds of the last)."""
    first = None
    for workers in options.workers:
        prepare = Prepare(options, text, folder / f"workers-{workers}", workers)
        seconds, cores, memory_mb = prepare.run()
        bound_mb = memory_bound_mb(workers, options.part_mib, record_bytes)
        print(f"{workers} workers: {seconds:.1f} s, {options.megabytes / seconds:.1f} MB/s, {cores:.2f} cores, "
              f"{memory_mb:.0f} MB of memory, bound {bound_mb:.0f}")
        print("  " + "\n  ".join(prepare.log.read_text().splitlines()[-4:]))
        first = first or prepare.output
        assert not differences(first, prepare.output), f"{workers} workers give other bytes"
        assert not options.check_memory or memory_mb <= bound_mb, "more memory than the documents say"
    return first, seconds


def kill_at_random(prepare, kills, seconds, dice):
    """Kills runs that all together last about `seconds`; a text that gets done before is begun again, and killed sooner."""
    killed, began_again = 0, 0
    while killed < kills and began_again < ATTEMPTS_MAX:
        killed += prepare.killed(dice.uniform(0, 2 * seconds / (kills + 1)))
        if killed < kills and (prepare.output / "manifest.json").exists():
            shutil.rmtree(prepare.output)
            began_again += 1
            seconds /= 2
    return killed, began_again


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=15)
    parser.add_argument("--workers", type=lambda text: list(map(int, text.split(","))), default=[1, 2, 4])
    parser.add_argument("--part-mib", type=int, default=1)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--check-memory", action="store_true")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    print(f"seed {options.seed}")
    os.environ["TRAININGJOB_TERMINATION_LOG"] = os.devnull
    with tempfile.TemporaryDirectory(prefix="tj-prepare-") as name:
        folder = pathlib.Path(name)
        text = folder / "text"
        text.mkdir()
        record_bytes = write_text(text, int(options.megabytes * 1e6), dice)
        expected, seconds = compare_workers(options, text, folder, record_bytes)
        prepare = Prepare(options, text, folder / "killed", options.workers[-1])
        refusal = prepare.refused(bytes_max=50_000)
        print(refusal)
        assert re.fullmatch(r"trainer prepare: \S+\.draft: can't be written: File too large", refusal), refusal
        killed, began_again = kill_at_random(prepare, options.kills, seconds, dice)
        prepare.run()
        kept = re.search(r"kept from before: [\d.]+ MB|was done already", prepare.log.read_text())
        print(f"killed {killed} times, began again {began_again} times; at the end {kept.group(0) if kept else 'nothing was kept'}")
        assert killed == options.kills, "hardly a run lived long enough to be killed"
        changed = differences(expected, prepare.output)
        assert not changed, f"the killed run left other bytes: {changed}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
