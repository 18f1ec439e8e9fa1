"""The parts of the kit, each a function that yields rows, and the seconds that each may take."""
import dataclasses
import typing

import clips
import comparisons
import conversations
import policies
import speed
import starting


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    what: str
    seconds: int
    rows: typing.Callable
    is_asked_for: bool = False  # it runs only where it is named: with it, all would take more than ten minutes


PARTS = (
    Part("programs", "they start here, and find the card", 20, starting.programs),
    Part("comm", "the collectives, NCCL and Gloo", 30, starting.collectives),
    Part("parity", "each workload's losses beside the CPU's", 40, comparisons.parity),
    Part("bf16", "bfloat16 beside float32", 25, comparisons.bf16),
    Part("resume", "a resumed run is bit for bit the undisturbed one", 40, comparisons.resume),
    Part("zero", "the stages of ZeRO beside stage 0", 25, comparisons.zero),
    Part("save", "what a save costs the training beside it", 40, speed.save),
    Part("rates", "tokens/s and MFU beside PyTorch's", 150, speed.rates),
    Part("clips", "TAEHV's clips/s beside PyTorch's", 150, clips.rates),
    Part("decode", "TAEHV decodes a video", 20, clips.decode),
    Part("policies", "pi0's steps/s and memory beside LeRobot's", 150, policies.rates, is_asked_for=True),
    Part("qwen", "Qwen2.5-VL's tokens/s and memory beside transformers'", 300, conversations.rates, is_asked_for=True),
    Part("kernels", "where the card's time goes", 35, speed.kernels),
)
