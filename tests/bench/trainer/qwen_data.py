"""Shapes of Qwen2.5-VL and of a VGGT beside it, conversations about drawn rooms for them, and these as the tokens that Qwen's template
makes of them: for this trainer, and for whoever trains beside it. Needs nothing but Python."""
import dataclasses
import json
import pathlib
import re
import sys

# In the tree, and in the GPU kit, where it lies beside this file.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "trainer/qwen"))
import rooms  # noqa: E402

SYSTEM = "You are a helpful assistant."  # where a conversation has no such turn
HEADER_TOKENS = 3  # <|im_start|>, who speaks, the end of the line
NOT_LEARNED = -100
PATCH, MERGE = 14, 2
SPEAKERS = {"human": "user", "gpt": "assistant"}
SPEAKER = re.compile("(system|user|assistant)")  # one token each in the rooms' tokenizer, and every other byte is one


@dataclasses.dataclass(frozen=True)
class Shape:
    """In the words of config.json, and of a VGGT's tensors."""
    preset: str  # of this trainer, whose sizes --init-from may take the place of
    text: dict
    vision: dict
    vggt: dict
    special_ids: tuple = rooms.SPECIAL_IDS

    @property
    def special(self):
        return dict(zip(rooms.SPECIAL, self.special_ids))


@dataclasses.dataclass(frozen=True)
class Work:
    """Conversations of `history` older pictures and a newest one."""
    conversations: int
    history: int
    scale: int  # pictures have so many times 84 pixels on each side
    pictures: int = None  # so many, which come again in all of them; none: each is another one

    @property
    def side(self):
        return rooms.SIDE * self.scale

    @property
    def tokens_of_picture(self):
        return (self.side // (PATCH * MERGE)) ** 2


def text(width, hidden, layers, heads, sections, vocabulary):
    return {"vocab_size": vocabulary, "hidden_size": width, "intermediate_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "max_position_embeddings": 8192,
            "bos_token_id": None, "eos_token_id": None, "use_cache": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}}


def vision(width, hidden, layers, heads, full_layers, out):
    return {"hidden_size": width, "intermediate_size": hidden, "depth": layers, "num_heads": heads, "fullatt_block_indexes": full_layers,
            "out_hidden_size": out, "tokens_per_second": 2}


SHAPES = {
    # The tests' own, in seconds.
    "nano": Shape("qwen-vggt-nano", text(64, 96, 2, 4, [2, 3, 3], 512), vision(32, 48, 2, 2, [1], 64),
                  {"width": 32, "hidden": 64, "heads": 2, "layers": 2, "dino_layers": 2, "square": 4, "registers": 2}),
    # A fiftieth of 3B: vision tower, table of words and VGGT have the shares that they have there; the coupling is the nano's, as it is
    # small there, too.
    "mid": Shape("qwen-vggt-nano", text(512, 2752, 12, 8, [8, 12, 12], 8192), vision(320, 856, 10, 4, [4, 9], 512),
                 {"width": 256, "hidden": 1024, "heads": 4, "layers": 8, "dino_layers": 8, "square": 37, "registers": 4}),
    "3b": Shape("qwen2.5-vl-3b", text(2048, 11008, 36, 16, [16, 24, 24], 151936), vision(1280, 3420, 32, 16, [7, 15, 23, 31], 2048), {},
                (151643, 151644, 151645, 151652, 151653, 151654, 151655, 151656)),
}


def write(folder, shape, work):
    """FOLDER/set/rooms.json with its pictures, and FOLDER/tokenizer.json."""
    folder.mkdir(parents=True, exist_ok=True)
    rooms.write_set(folder / "set", work.conversations, work.history, pictures_max=work.pictures, scale=work.scale)
    rooms.write_tokenizer(folder / "tokenizer.json", shape.special_ids)


def read(folder):
    return json.loads((folder / "set/rooms.json").read_text())


def text_ids(words, vocabulary):
    return [number for piece in SPEAKER.split(words)
            for number in ([vocabulary[piece]] if SPEAKER.fullmatch(piece) else piece.encode())]


def encoded(folder, shape, work):
    """(ids, labels) of each conversation."""
    vocabulary, special = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"], shape.special
    picture = [special["<|vision_start|>"], *[special["<|image_pad|>"]] * work.tokens_of_picture, special["<|vision_end|>"]]

    def turn(speaker, said):
        first, *others = said.split("<image>")
        ids = [special["<|im_start|>"], *text_ids(f"{speaker}\n{first}", vocabulary)]
        for part in others:
            ids += picture + text_ids(part, vocabulary)
        return [*ids, special["<|im_end|>"], *text_ids("\n", vocabulary)]

    for conversation in read(folder):
        ids, labels = [], []
        turns = [("system", SYSTEM), *((SPEAKERS[each["from"]], each["value"]) for each in conversation["conversations"])]
        for speaker, said in turns:
            own = turn(speaker, said)
            learned = own[HEADER_TOKENS:] if speaker == "assistant" else []
            ids += own
            labels += [NOT_LEARNED] * (len(own) - len(learned)) + learned
        yield ids, labels


def tokens_per_conversation(folder, shape, work):
    counts = [len(ids) for ids, _ in encoded(folder, shape, work)]
    return sum(counts) / len(counts)
