"""How much of everything is done: on a GPU, and on a CPU, where it only shows that the kit works."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Gpt2Shape:
    """Of the model whose speed is measured, as all contenders are told it."""
    preset: str
    layers: int
    heads: int
    width: int
    vocabulary: int
    padded_vocabulary: int  # what nanoGPT takes instead
    context: int

    def flops_per_token(self):
        """6 x parameters (without the embeddings of positions) + 12 x layers x width x sequence: PaLM (arXiv 2204.02311),
        appendix B.
        """
        c = self.width
        parameters = self.vocabulary * c + self.layers * (12 * c * c + 13 * c) + 2 * c
        return 6 * parameters + 12 * self.layers * c * self.context


@dataclasses.dataclass(frozen=True)
class Clips:
    """Of the videos that TAEHV trains on, and of the one that it decodes."""
    preset: str
    frames: int
    side: int  # pixels
    batch_size: int
    steps: int  # of one round, and of these before the clock counts
    warmup: int
    rounds: int
    decoded_frames: int
    decoded_width: int
    decoded_height: int


@dataclasses.dataclass(frozen=True)
class Policies:
    """Of pi0, on samples that are made up."""
    preset: str
    batch_size: int
    recomputes: bool
    memory_gib: int  # that the card must have: float32 weights, gradients and moments, and the passes
    steps: int  # of one round, and of these before the clock counts
    warmup: int
    rounds: int


@dataclasses.dataclass(frozen=True)
class Conversations:
    """Of a Qwen2.5-VL, on conversations about drawn pictures."""
    preset: str
    shape: str  # the same, of peers/qwen_data.py
    conversations: int
    history: int  # older pictures beside the newest
    scale: int  # sides of so many times 84 pixels
    batch_size: int
    recomputes: bool
    memory_gib: int  # that the card must have
    steps: int  # of one round, and of these before the clock counts
    warmup: int
    rounds: int


@dataclasses.dataclass(frozen=True)
class Size:
    is_small: bool
    shape: Gpt2Shape
    precision: str  # of the speed
    compiler: str  # of the compiled contender: a backend of torch.compile
    batch_size: int
    steps: int  # of one round, and of these before the clock counts
    warmup: int
    rounds: int
    loss_steps: int  # of the parts that compare losses
    save_every: int  # of the part that saves: three saves, each written before the next
    clips: Clips
    policies: Policies
    qwen: Conversations


# The author's recipe, and the video of his figure: 61 frames of 512 x 320 in 0.5 s and 0.5 GB on a GH200.
FULL = Size(is_small=False, shape=Gpt2Shape("gpt2-small", 12, 12, 768, 50257, 50304, 1024), precision="bf16",
            compiler="inductor", batch_size=32, steps=40, warmup=10, rounds=2, loss_steps=30, save_every=60,
            clips=Clips("taehv", 12, 64, 16, steps=60, warmup=20, rounds=2, decoded_frames=61, decoded_width=512,
                        decoded_height=320),
            policies=Policies("pi0", 32, recomputes=True, memory_gib=75, steps=8, warmup=3, rounds=1),
            qwen=Conversations("qwen2.5-vl-3b", "3b", 8, history=8, scale=4, batch_size=4, recomputes=True, memory_gib=75, steps=8, warmup=3,
                               rounds=1))
SMALL = Size(is_small=True, shape=Gpt2Shape("gpt2-nano", 4, 4, 128, 256, 256, 64), precision="fp32",
             compiler="aot_eager", batch_size=8, steps=10, warmup=2, rounds=1, loss_steps=6, save_every=12,
             clips=Clips("taehv-nano", 8, 32, 2, steps=6, warmup=2, rounds=1, decoded_frames=9, decoded_width=64,
                         decoded_height=48),
             policies=Policies("pi0-nano", 8, recomputes=True, memory_gib=0, steps=10, warmup=2, rounds=1),
             qwen=Conversations("qwen-vggt-nano", "nano", 8, history=1, scale=1, batch_size=4, recomputes=True, memory_gib=0, steps=10,
                                warmup=2, rounds=1))
