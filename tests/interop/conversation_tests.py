"""Our tokens, labels and pixels of conversations beside those of Hugging Face's tokenizers and of torch. Part of
tests/interop/run.
"""
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import types
import zlib

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

import normal_forms
import qwen_tests
import tokenizer_tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/trainer/taehv")]
import videos  # noqa: E402
from support import ffmpeg  # noqa: E402

PROBE = ROOT / "build/dev/tests/interop/conversation_probe"
PLUGIN = ROOT / "build/dev/trainer/libtrainer_picture.so"
VIDEO_PLUGIN = ROOT / "build/dev/trainer/libtrainer_video.so"
SECONDS_MAX = 240
VOCABULARY = 1200
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
CUT = ["<tool_call>", "</tool_call>", "<|fim_prefix|>"]  # Qwen's own are not special either
TOKENS, POSITIONS, LABELS, PATCHES, GRIDS, FRAMES, HASHES = range(7)
LENGTH_MAX = 128_000  # of a conversation: what transformers takes a video's share of
NEAR_SHARE_MIN, NEAR_MAX = 0.99, 1
PIXELS_MAX = 576 * 784


def probe(*words):
    done = subprocess.run([str(word) for word in (PROBE, *words)], text=True, timeout=SECONDS_MAX, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-3000:]


def qwen_like(folder):
    """A tokenizer with all of Qwen2's rules, learned of little text."""
    dice = random.Random(5)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [*tokenizer_tests.chinese(dice, 300), *tokenizer_tests.fuzz_texts(dice, 300),
             "go left turn right stop assistant user system\nI'm you'll they'Ve " * 20]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in CUT])
    tokenizer.encode_special_tokens = True  # what a text says is text
    file = folder / "tokenizer.json"
    tokenizer.save(str(file))
    return tokenizer, file


def awkward_texts(dice, count):
    pieces = ["'S", "'\u017f", "'LL", "'Re", "'ve", "can't", "\r\n", " \n \n", "\n ", "e\u0301", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u212b", "\u0958",
              "\u0f43", "a\u0323\u0307", "a\u0307\u0323", "\u0344", "12345", "\u00b2", "1\u00bd", "\u3000", "\u00a0x", "...\n\n", " !?\r\n", "<|im_end|>",
              "<|image_pad|>", "<tool_call>", "</tool_call>x", "<|fim_prefix|>", "<tool", "\u2028a", "\u0345\u0315", "\U0001d15e", "\ufb1f"]
    for text in tokenizer_tests.fuzz_texts(dice, count):
        places = [dice.randrange(len(text) + 1) for _ in range(dice.randrange(4))]
        for at in places:
            text = text[:at] + dice.choice(pieces) + text[at:]
        yield text


def test_qwen_tokenizer_gives_the_ids_of_tokenizers(folder):
    tokenizer, file = qwen_like(folder)
    dice = random.Random(6)
    texts = [*awkward_texts(dice, 3000), *(chr(code) + "\u0301'" + chr(code) for code in range(0x80, 0x3100)),
             *("x" + chr(code) + "\u0323" + chr(code) for code in range(0xF900, 0xFB50)), "", "<|im_end|>", " " * 5000, "a" * 5000]
    (folder / "texts.json").write_text(json.dumps(texts))
    probe("ids", file, folder / "texts.json", folder / "ids.json")
    ours = json.loads((folder / "ids.json").read_text())
    theirs = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    wrong = [(text, own, their) for text, own, their in zip(texts, ours, theirs, strict=True) if own != their]
    assert not wrong, f"{len(wrong)} of {len(texts)} texts, such as {[(ascii(text), *rest) for text, *rest in wrong[:3]]}"
    special = {tokenizer.token_to_id(token) for token in SPECIAL}
    assert not special.intersection(*[set().union(*ours)]), "a text made a special token"
    print(f"      {len(texts)} texts, {sum(map(len, ours))} ids")


def test_the_tables_of_form_c_are_theirs(_folder):
    kept = (ROOT / "trainer/data/normal_forms.inc").read_text(encoding="utf-8")
    assert kept == normal_forms.text(), "normal_forms.inc is not what normal_forms.py prints"


def png(pixels):
    """uint8 [3, height, width] as a file."""
    _, height, width = pixels.shape
    rows = pixels.permute(1, 2, 0).reshape(height, width * 3).numpy()
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))  # noqa: E731
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 1)) + chunk(b"IEND", b""))


def photo(dice, height, width):
    """Slopes, edges and a little noise, as pictures have them."""
    place = torch.Generator().manual_seed(dice.randrange(1 << 30))
    slopes = torch.rand(3, 4, 5, generator=place)
    smooth = torch.nn.functional.interpolate(slopes[None], size=(height, width), mode="bilinear")[0] * 220
    smooth[:, height // 3 :, width // 2 :] *= 0.4
    return (smooth + torch.rand(3, height, width, generator=place) * 12).clamp(0, 255).to(torch.uint8)


def expected_patches(pixels, smart_resize):
    """uint8 [patches, 1176], by transformers' own steps."""
    height, width = smart_resize(*pixels.shape[1:], 28, 3136, PIXELS_MAX)
    fit = torch.nn.functional.interpolate(pixels[None].float(), size=(height, width), mode="bicubic", antialias=True)
    fit = fit.round().clamp(0, 255)[0]
    cut = fit.reshape(3, height // 28, 2, 14, width // 28, 2, 14).permute(1, 4, 2, 5, 0, 3, 6)
    return cut.unsqueeze(5).expand(-1, -1, -1, -1, -1, 2, -1, -1).reshape(-1, 1176), [1, height // 14, width // 14, 0]


def write_set(folder, dice, count):
    """Conversations as users write them, and the same as our rules name them: turns, and pictures of each."""
    sizes = [(dice.randint(20, 260), dice.randint(20, 260)) for _ in range(60)]
    pictures = [photo(dice, *size) for size in sizes]
    for at, pixels in enumerate(pictures):
        (folder / f"{at}.png").write_bytes(png(pixels))
    rows, cases = [], []
    texts = iter(awkward_texts(dice, 5000))
    say = lambda: re.sub("<image>|<video>", "", next(texts))  # noqa: E731
    for _ in range(count):
        turns, shown = [], []
        if dice.random() < 0.4:
            turns.append(["system", say()])
        for _ in range(dice.randint(1, 3)):
            text = say()
            for _ in range(dice.choice((0, 0, 1, 2))):
                text += "<image>" + say()
                shown.append(dice.randrange(len(pictures)))
            turns += [["user", text], ["assistant", say()]]
        names = {"system": "system", "user": "human", "assistant": "gpt"}
        files = [f"{at}.png" for at in shown]
        if dice.random() < 0.5:
            row = {"conversations": [{"from": names[role], "value": text} for role, text in turns]}
        else:
            row = {"messages": [{"role": role, "content": text} for role, text in turns]}
        if files:
            row |= {"image": files[0]} if len(files) == 1 else {"images": files}
        rows.append(row)
        cases.append((turns, shown))
    return rows, cases, pictures


def expected_tokens(tokenizer, turns, grids):
    """By the template in short; what is special stands there because the template says so."""
    ids, labels, grids = [], [], iter(grids)
    number = tokenizer.token_to_id
    encode = lambda text: tokenizer.encode(text).ids  # noqa: E731
    if turns[0][0] != "system":
        turns = [["system", "You are a helpful assistant."], *turns]
    for role, text in turns:
        own, pending = [number("<|im_start|>")], role + "\n"
        for part in re.split("(<image>|<video>)", text) if role == "user" else [text]:
            if part not in ("<image>", "<video>"):
                pending += part
                continue
            own += encode(pending) + [number("<|vision_start|>")]
            frames, rows, columns, _ = next(grids)
            own += [number(f"<|{part[1:-1]}_pad|>")] * (frames * rows * columns // 4) + [number("<|vision_end|>")]
            pending = ""
        own += encode(pending) + [number("<|im_end|>")] + encode("\n")
        ids += own
        labels += [-100] * 3 + own[3:] if role == "assistant" else [-100] * len(own)
    return ids, labels


def tensor_of(found):
    values = list(bytes.fromhex(found["values"])) if isinstance(found["values"], str) else found["values"]
    return torch.tensor(values, dtype=torch.int32).view(found["shape"])


def test_conversations_have_the_tokens_labels_and_pixels_of_the_reference(folder):
    tokenizer, file = qwen_like(folder)
    dice = random.Random(7)
    smart_resize = qwen_tests.source_of(qwen_tests.PROCESSOR, "smart_resize")
    rows, cases, pictures = write_set(folder, dice, 200)
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    order = {"tokenizer": str(file), "data": str(folder / "data.jsonl"), "plugin": str(PLUGIN), "tokens_max": 100_000,
             "ids": [tokenizer.token_to_id(token) for token in SPECIAL[1:]]}
    (folder / "order.json").write_text(json.dumps(order))
    probe("samples", folder / "order.json", folder / "answer.json")
    answer = json.loads((folder / "answer.json").read_text())
    expected = [expected_patches(pixels, smart_resize) for pixels in pictures]
    near, values, furthest = 0, 0, 0
    assert len(answer) == len(cases)
    for (turns, shown), found in zip(cases, answer, strict=True):
        tensors = [tensor_of(tensor) for tensor in found["tensors"]]
        grids = [expected[at][1] for at in shown]
        assert tensors[GRIDS][0].tolist() == grids, (tensors[GRIDS], grids)
        ids, labels = expected_tokens(tokenizer, turns, grids)
        assert tensors[TOKENS][0].tolist() == ids, turns
        assert tensors[LABELS][0].tolist() == labels, turns
        assert found["weight"] == sum(label != -100 for label in labels)
        if shown:
            apart = (tensors[PATCHES][0] - torch.cat([expected[at][0] for at in shown])).abs()
            near, values, furthest = near + int((apart <= NEAR_MAX).sum()), values + apart.numel(), max(furthest, int(apart.max()))
    assert near >= NEAR_SHARE_MIN * values, f"{near} of {values} pixels are near, the furthest {furthest} apart"
    print(f"      {len(cases)} conversations, {values} pixels: {100 * near / values:.3f} % within 1, none more than {furthest} apart")


def clips_of(folder):
    """Videos of some sizes, lengths and rates: (file, frames, rate, height, width). Their times run no further than their sides, behind which
    transformers 5.23 goes on."""
    clips = [("a.mp4", 24, 8, 64, 96), ("b.mkv", 40, 10, 120, 200), ("c.mkv", 7, 2, 90, 60), ("d.mp4", 150, 30, 180, 320), ("e.mp4", 5, 10, 48, 48),
             ("f.mkv", 24, 10, 900, 1300)]
    for name, frames, rate, height, width in clips:
        videos.make(folder / name, "testsrc2", frames, f"{width}x{height}", rate)
    return clips


def expected_video(folder, clip):
    """uint8 patches, grid and seconds of a row of patches: transformers' own steps on frames that FFmpeg's program decodes, and qwen_vl_utils'
    choice of them."""
    name, total, rate, height, width = clip
    rule = types.SimpleNamespace(num_frames=None, fps=None, temporal_patch_size=2, min_frames=4, max_frames=32, max_video_tokens=LENGTH_MAX)
    sampled = qwen_tests.source_of(qwen_tests.VIDEO_PROCESSOR, "sample_frames")
    count = len(sampled(rule, types.SimpleNamespace(total_num_frames=total, fps=rate), fps=2))
    numbers = torch.linspace(0, total - 1, count).round().long()
    pixels = torch.frombuffer(bytearray(ffmpeg.pixels(folder / name)), dtype=torch.uint8).view(total, height, width, 3)
    frames = pixels[numbers].permute(0, 3, 1, 2)
    least, most = 128 * 784, 768 * 784
    most = max(min(most, int(LENGTH_MAX * 784 * 0.9) * 2 // count), int(least * 1.05))
    size = qwen_tests.source_of(qwen_tests.VIDEO_PROCESSOR, "smart_resize")(height, width, 28, least, most)
    fit = torch.nn.functional.interpolate(frames.float(), size=size, mode="bicubic", antialias=True).round().clamp(0, 255)
    patches, *grid = qwen_tests.source_of(qwen_tests.VIDEO_PROCESSOR, "patchify")(None, fit[None], 14, 2, 2)
    return patches[0], [*grid, 1], 2 / (count / total * rate)


def test_videos_have_the_tokens_positions_and_pixels_of_the_reference(folder):
    tokenizer, file = qwen_like(folder)
    smart_resize = qwen_tests.source_of(qwen_tests.PROCESSOR, "smart_resize")
    still = photo(random.Random(8), 90, 120)
    (folder / "still.png").write_bytes(png(still))
    clips = clips_of(folder)
    texts = ["<video>\nwhat?", "see <image> and <video>, then?", "<video><image>?"]
    rows = [{"video": clip[0], "image": ["still.png"] * texts[at % 3].count("<image>"),
             "conversations": [{"from": "human", "value": texts[at % 3]}, {"from": "gpt", "value": "left"}]} for at, clip in enumerate(clips)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ids = [tokenizer.token_to_id(token) for token in SPECIAL[1:]]
    order = {"tokenizer": str(file), "data": str(folder / "data.jsonl"), "plugin": str(PLUGIN), "video_plugin": str(VIDEO_PLUGIN),
             "tokens_max": LENGTH_MAX, "ids": ids}
    (folder / "order.json").write_text(json.dumps(order))
    probe("samples", folder / "order.json", folder / "answer.json")
    picture, picture_grid = expected_patches(still, smart_resize)
    model, near, values = qwen_tests.random_model(True), 0, 0
    for at, (clip, found) in enumerate(zip(clips, json.loads((folder / "answer.json").read_text()), strict=True)):
        text, tensors = texts[at % 3], [tensor_of(tensor) for tensor in found["tensors"]]
        patches, grid, seconds = expected_video(folder, clip)
        shown = [(picture, picture_grid) if mark == "<image>" else (patches, grid) for mark in re.findall("<image>|<video>", text)]
        grids = [each for _, each in shown]
        assert tensors[GRIDS][0].tolist() == grids, (clip, tensors[GRIDS], grids)
        wanted, labels = expected_tokens(tokenizer, [["user", text], ["assistant", "left"]], grids)
        assert tensors[TOKENS][0].tolist() == wanted and tensors[LABELS][0].tolist() == labels, clip
        tokens = torch.tensor([wanted])
        inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "second_per_grid_ts": torch.tensor([seconds]),
                  "mm_token_type_ids": (tokens == ids[4]).int() + 2 * (tokens == ids[5]).int(), "video_grid_thw": torch.tensor([grid[:3]])}
        if "<image>" in text:
            inputs["image_grid_thw"] = torch.tensor([picture_grid[:3]])
        positions = qwen_tests.positions_of(model, inputs)[:, 0]
        assert torch.equal(tensors[POSITIONS][0].long(), positions), clip
        apart = (tensors[PATCHES][0] - torch.cat([each for each, _ in shown])).abs()
        near, values = near + int((apart <= NEAR_MAX).sum()), values + apart.numel()
    assert near >= NEAR_SHARE_MIN * values, f"{near} of {values} pixels are near"
    print(f"      {len(clips)} videos, {values} pixels: {100 * near / values:.3f} % within 1")
