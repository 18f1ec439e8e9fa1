"""Rooms with doors of four colours as PNG pictures, and what a guide says in them, as a set of conversations: the instruction names a colour, older
pictures show the doors as they were, and the answer is the way to go now. Also a tokenizer of bytes for a nano Qwen2.5-VL.

    rooms.py FOLDER CONVERSATIONS [PICTURES]     FOLDER/set and FOLDER/tokenizer.json; with PICTURES, conversations share so many"""
import itertools
import json
import pathlib
import random
import struct
import sys
import zlib

SIDE = 84  # pixels: 3 x 3 tokens
COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 70, 230), "yellow": (230, 220, 50)}
WAYS = ("left", "forward", "right", "stop")
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
SPECIAL_IDS = tuple(range(499, 499 + len(SPECIAL)))  # of a nano


def png(rows):
    """Of rows of (red, green, blue)."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    raw = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in rows)
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def room(doors, light):
    """Lit from the left, with a door of a colour in each third."""
    def pixel(x, y):
        third, inside = divmod(x, SIDE // 3)
        if y >= 24 and 6 <= inside < 22:
            return COLOURS[doors[third]]
        shade = light + 50 - 50 * third + (30 if y < 12 else 0)
        return (shade, shade, shade)

    kinds = {y: [pixel(x, y) for x in range(SIDE)] for y in (0, 12, 24)}
    return [kinds[0 if y < 12 else 12 if y < 24 else 24] for y in range(SIDE)]


def enlarged(rows, scale):
    """Each pixel becomes so many in both directions."""
    return [wide for row in rows for wide in [[pixel for pixel in row for _ in range(scale)]] * scale]


def drawn_rooms(folder, dice, count, scale):
    """Pictures without an end, each with its doors; from `count` on those before come again in another order."""
    def draw(number):
        doors = dice.sample(list(COLOURS), 4)
        name = f"rooms/{number:04}.png"
        (folder / name).write_bytes(png(enlarged(room(doors, dice.randrange(90, 130)), scale)))
        return name, doors

    if count is None:
        yield from map(draw, itertools.count())
    drawn = [draw(number) for number in range(count)]
    while True:
        yield dice.choice(drawn)


def write_set(folder, count, history=1, seed=1, pictures_max=None, scale=1):
    """rooms.json and its pictures of `scale` times SIDE pixels; returns the file and the answers in their order."""
    dice = random.Random(seed)
    (folder / "rooms").mkdir(parents=True, exist_ok=True)
    seen = drawn_rooms(folder, dice, pictures_max, scale)
    conversations, answers = [], []
    for _ in range(count):
        pictures = []
        for _ in range(history + 1):
            name, doors = next(seen)
            pictures.append(name)
        wanted = dice.randrange(4)
        answers.append(WAYS[wanted])
        conversations.append({"conversations": [
            {"from": "human", "value": "<image>" * len(pictures) + f"go to the {doors[wanted]} door"},
            {"from": "gpt", "value": WAYS[wanted]}], "images": pictures})
    path = folder / "rooms.json"
    path.write_text("[\n" + ",\n".join(json.dumps(each) for each in conversations) + "\n]\n")
    return path, answers


def byte_letters():
    """GPT-2's letters for bytes, as its encoder.py makes them."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("\xa1"), ord("\xac") + 1), *range(ord("\xae"), ord("\xff") + 1)]
    letters, free = {}, 256
    for byte in range(256):
        letters[byte] = chr(byte) if byte in plain else chr(free)
        free += byte not in plain
    return letters


def write_tokenizer(path, special_ids=SPECIAL_IDS):
    """tokenizer.json: a token for each byte and for each role, and Qwen's special ones."""
    vocabulary = {letter: byte for byte, letter in byte_letters().items()}
    merges = []
    for word in ("system", "user", "assistant"):
        for end in range(2, len(word) + 1):
            if word[:end] not in vocabulary:
                vocabulary[word[:end]] = len(vocabulary)
                merges.append(f"{word[:end - 1]} {word[end - 1]}")
    split = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    path.write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": number, "content": text} | special for number, text in zip(special_ids, SPECIAL)],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False}, byte_level]},
        "post_processor": byte_level, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False,
                  "byte_fallback": False, "vocab": vocabulary, "merges": merges}}))


if __name__ == "__main__":
    out, counts = pathlib.Path(sys.argv[1]), map(int, sys.argv[2:])
    write_set(out / "set", next(counts), pictures_max=next(counts, None))
    write_tokenizer(out / "tokenizer.json")
