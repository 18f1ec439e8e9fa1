"""Episodes of the expert as a LeRobot data set, by LeRobot's own Python: two videos, states, and actions (joints that are asked for).

usage: record.py OUT EPISODES [frames]

Makes OUT/set, OUT/tokenizer.model for its prompts and, where asked, OUT/frames.npz: all of it as it was before any codec.
"""
import pathlib
import sys

import arm
import numpy as np
import sentencepiece
from lerobot.datasets.lerobot_dataset import LeRobotDataset

FPS = 10
SEED = 1  # of what is recorded: simulations have others
TOKENS = 300


def features():
    pictures = {name: {"dtype": "video", "shape": (arm.SIDE, arm.SIDE, 3), "names": ["height", "width", "channels"]} for name in arm.CAMERAS}
    joints = {name: {"dtype": "float32", "shape": (2,), "names": ["shoulder", "elbow"]} for name in ("observation.state", "action")}
    return pictures | joints


def episode(number):
    """Its frames, until the arm was at the target for a while."""
    scene, held = arm.begin(number, SEED), 0
    for _ in range(arm.STEPS_MAX):
        wanted = arm.towards(scene.joints, scene.target)
        pictures = {name: arm.picture(scene, name) for name in arm.CAMERAS}
        yield pictures | {"observation.state": scene.joints.astype(np.float32), "action": wanted.astype(np.float32), "task": scene.task}
        held += bool(np.abs(wanted - scene.joints).max() < 1e-6)
        if held == arm.HELD_STEPS:
            return
        scene.move(wanted)


def write_frames(out, episodes):
    """Pictures uint8 [frames, cameras, SIDE, SIDE, 3], state and action [frames, 2], task and number of the episode [frames]."""
    frames = [(number, frame) for number, each in enumerate(episodes) for frame in each]
    np.savez(out, pictures=[[frame[name] for name in arm.CAMERAS] for _, frame in frames],
             **{name.removeprefix("observation."): [frame[name] for _, frame in frames] for name in ("observation.state", "action", "task")},
             episode=[number for number, _ in frames])


def write_tokenizer(out):
    """A SentencePiece model of the kind of PaliGemma's: pairs of bytes, unknown letters as bytes, `\\n` a piece of its own."""
    text = [f"reach the {colour} disc {number}" for colour in arm.COLOURS for number in range(100)]
    with open(out, "wb") as written:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text), model_writer=written, vocab_size=TOKENS, hard_vocab_limit=False, model_type="bpe", byte_fallback=True,
            pad_id=0, eos_id=1, bos_id=2, unk_id=3, user_defined_symbols=["\n"], add_dummy_prefix=False, normalization_rule_name="identity",
            remove_extra_whitespaces=False, minloglevel=2)


def main():
    out, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    episodes = [list(episode(number)) for number in range(count)]
    data = LeRobotDataset.create("test/arm", FPS, features(), root=out / "set", vcodec="h264")
    for frames in episodes:
        for frame in frames:
            data.add_frame(dict(frame))
        data.save_episode()
    data.finalize()
    write_tokenizer(out / "tokenizer.model")
    if sys.argv[3:] == ["frames"]:
        write_frames(out / "frames.npz", episodes)


if __name__ == "__main__":
    main()
