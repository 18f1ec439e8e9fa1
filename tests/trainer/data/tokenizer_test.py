"""`trainer prepare tokenizer`, then `trainer prepare` with what it learned: the tokens are the very text again. And stopped
in the middle, it ends with 75 and leaves nothing.

usage: tokenizer_test.py TRAINER
"""

import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
TEXT = ROOT / "tests/trainer/data/chinese/text.txt"
SECONDS_MAX = 120
SEED = 20261125


def run(*words):
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout}"
    return done.stdout


def bytes_of_tokens(tokenizer):
    """By id: the bytes; GPT-2 writes each as a printable character (openai/gpt-2: bytes_to_unicode)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
    vocabulary = tokenizer["model"]["vocab"]
    return {number: token.encode() if token == "<|endoftext|>" else bytes(byte_of[letter] for letter in token)
            for token, number in vocabulary.items()}


def random_documents(dice):
    pieces = [" ", "  ", "\n", "\t", "don't", "we'll", "2026", "人工智能", "训练", "。", "👍🏽", "\u3000", "e\u0301", "\u0000", "----", "x"]
    for _ in range(2000):
        text = "".join(dice.choice(pieces) * dice.choice((1, 1, 3)) for _ in range(dice.randrange(1, 30)))
        code = dice.randrange(0x110000)
        yield text + ("" if 0xD800 <= code < 0xE000 else chr(code))


def check_round_trip(trainer, folder):
    made = run(trainer, "prepare", "tokenizer", "--input", TEXT, "--vocabulary-size", 600, "--output", folder / "tokenizer.json")
    assert "600 tokens by 343 merges" in made, made
    texts = list(random_documents(random.Random(SEED)))
    with open(folder / "text.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    run(trainer, "prepare", "--input", folder / "text.jsonl", "--output", folder / "tokens", "--tokenizer", "bpe",
        "--vocabulary", folder / "tokenizer.json")
    token_bytes = bytes_of_tokens(json.loads((folder / "tokens/tokenizer.json").read_text(encoding="utf-8")))
    content = (folder / "tokens/train-000000.tok").read_bytes()
    width, count = struct.unpack_from("<I", content, 12)[0], struct.unpack_from("<q", content, 24)[0]
    assert width == 2, width
    ids = struct.unpack_from(f"<{count}H", content, 128)
    again = b"".join(token_bytes[number] for number in ids)
    assert again == b"".join(text.encode() + b"<|endoftext|>" for text in texts), "the tokens are another text"
    print(f"{len(texts)} documents, {count} tokens: the very text again")


def catches_sigterm(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return int(caught, 16) >> (signal.SIGTERM - 1) & 1


def check_stop(trainer, folder):
    """Words that are all different, and more merges than can be done before the signal."""
    dice = random.Random(SEED)
    with open(folder / "long.txt", "w", encoding="utf-8") as file:
        for _ in range(60_000):
            file.write("".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=120)) + "\n")
    (folder / "out").mkdir()
    command = [trainer, "prepare", "tokenizer", "--input", folder / "long.txt", "--vocabulary-size", 1 << 20, "--output",
               folder / "out/tokenizer.json", "--min-frequency", 1]
    with open(folder / "log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + SECONDS_MAX
        while process.poll() is None and not catches_sigterm(process) and time.monotonic() < deadline:
            pass
        process.send_signal(signal.SIGTERM)
        code = process.wait(SECONDS_MAX)
        log.seek(0)
        said = log.read()
    assert code == 75, f"exit code {code}: {said}"
    assert "asked to stop by signal 15; nothing is written" in said, said
    assert not list((folder / "out").iterdir()), "something is left"
    print("stopped by SIGTERM: nothing is left")


def main():
    os.environ["TRAININGJOB_TERMINATION_LOG"] = os.devnull
    trainer = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="tj-tokenizer-") as name:
        check_round_trip(trainer, pathlib.Path(name))
        check_stop(trainer, pathlib.Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
