"""`trainer prepare conversations`: what it finds, and that it goes on where it was killed.

  conversations_test.py TRAINER
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

PICTURES = pathlib.Path(__file__).resolve().parent / "pictures"
COUNT = 300
SECONDS_MAX = 60


def run(*words, code=0):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX,
                          check=False)
    assert done.returncode == code, f"ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def conversation(pictures, answer="yes"):
    return {"images": pictures, "conversations": [{"from": "human", "value": "<image>" * len(pictures) + "?"}, {"from": "gpt", "value": answer}]}


def main(trainer):
    with tempfile.TemporaryDirectory(prefix="tj-conversations-") as name:
        folder = pathlib.Path(name)
        rows = [conversation(["photo.jpg", "rgba.png"]) for _ in range(COUNT)]
        rows[7] = conversation(["none.png"])
        rows[70] = {"conversations": [{"from": "robot", "value": "?"}]}
        rows[71] = conversation(["wide.png"])
        rows[299] = conversation(["cut.jpg"])
        shutil.copytree(PICTURES, folder / "root")
        (folder / "root/cut.jpg").write_bytes((PICTURES / "photo.jpg").read_bytes()[:-20])
        data = folder / "data.json"
        data.write_text(json.dumps(rows, indent=1))
        command = [trainer, "prepare", "conversations", "--input", data, "--data-root", folder / "root", "--threads", 2]
        said = run(*command)
        for part in ("conversations  300, 598 turns", "24 x 16: 29", "conversation 8, at byte", "none.png is not there", "must be human, user",
                     "wide.png: is 20000 x 3 pixels", "broken         3 of 300 conversations"):
            assert part in said, f"{part!r} is not in\n{said}"
        assert "cut.jpg" not in said, said
        index = folder / "data.json.index.jsonl"
        whole = index.read_text()
        assert "cut.jpg" in run(*command, "--decode"), "not a picture that is cut short"
        assert "4 of 300" in run(*command, "--decode"), "not what was known"

        # Killed after two parts, within the third's line.
        lines = whole.splitlines(keepends=True)
        (folder / ".data.json.index.jsonl.part").write_text("".join(lines[:3]) + lines[3][:40])
        index.unlink()
        run(*command)
        assert index.read_text() == whole, "another index than without the kill"
        assert not (folder / ".data.json.index.jsonl.part").exists()

        assert "--data-root /nowhere: is no folder" in run(*command[:5], "--data-root", "/nowhere", code=78)
        data.write_text("hello")
        assert "at byte 0" in run(*command, code=65)


if __name__ == "__main__":
    main(sys.argv[1])
