"""Our Qwen2.5-VL beside that of transformers, and our VGGT beside one of its own in PyTorch. Part of tests/interop/run."""
import ast
import inspect
import json
import math
import pathlib
import random
import re
import subprocess

import jinja2
import torch
import transformers
from safetensors.torch import save_file
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
from transformers.vision_utils import get_vision_attention_seqlens, get_vision_window_index

import vggt_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = ROOT / "build/dev/tests/interop/qwen_probe"
SECONDS_MAX = 240
APART_MAX = 1e-4  # of the largest value of each tensor
GRADIENTS_APART_MAX = 1e-3
VOCABULARY, BEGIN, END, IMAGE, VIDEO = 512, 502, 503, 505, 506
PATCH_VALUES = 3 * 2 * 14 * 14

# Qwen2.5-VL's own, in short: what is shown stands where its part of the content does.
TEMPLATE = """{% for message in messages %}{% if loop.first and message.role != 'system' %}<|im_start|>system
You are a helpful assistant.<|im_end|>
{% endif %}<|im_start|>{{ message.role }}
{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}{% else %}<|vision_start|><|{{ part.type }}_pad|><|vision_end|>{%
 endif %}{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
SPECIAL = {"<|im_start|>": 151644, "<|im_end|>": 151645, "<|vision_start|>": 151652, "<|vision_end|>": 151653, "<|image_pad|>": 151655,
           "<|video_pad|>": 151656}


FULL_WIDTH = {"text": {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 1, "num_attention_heads": 16,
                       "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}},
              "vision": {"depth": 2, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048}}


def random_model(is_tied, sizes=None):
    """No tensor is zero or one, as new ones begin: these hide mistakes."""
    torch.manual_seed(31)
    text = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "max_position_embeddings": 4096, "bos_token_id": None, "eos_token_id": None,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}}
    vision = {"depth": 3, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64, "fullatt_block_indexes": [1],
              "tokens_per_second": 2}
    if sizes:
        text, vision = text | sizes["text"], vision | sizes["vision"]
    model = Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, tie_word_embeddings=is_tied, image_token_id=IMAGE, video_token_id=VIDEO,
        vision_start_token_id=BEGIN, vision_end_token_id=END)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 1 / parameter[0].numel() ** 0.5 if parameter.dim() > 1 else 0.1
            parameter.normal_(1.0 if "norm" in name or "ln_q" in name else 0.0, spread)
    return model


def conversation(words, *shown):
    """Of (grid, seconds; None: a picture); the last half of the words is learned."""
    ids = []
    for grid, seconds in shown:
        ids += [BEGIN] + [IMAGE if seconds is None else VIDEO] * (math.prod(grid) // 4) + [END]
    said = torch.randint(0, BEGIN, (words,)).tolist()
    labels = [-100] * (len(ids) + words - words // 2) + said[words - words // 2 :]
    return {"ids": ids + said, "labels": labels, "shown": shown,
            "patches": [torch.randn(math.prod(grid), PATCH_VALUES) for grid, _ in shown]}


# A picture of one window, others with partial ones, videos whose time runs no further than their sides.
SQUARE, WIDE, LARGE = ((1, 4, 4), None), ((1, 6, 12), None), ((1, 18, 20), None)
BATCHES = {
    "one picture": [(6, SQUARE)],
    "partial windows": [(9, LARGE, WIDE)],
    "several pictures, padded": [(6, SQUARE, WIDE, SQUARE), (30,), (4, WIDE)],
    "a video among pictures": [(7, SQUARE, ((3, 4, 10), 0.5), WIDE), (5, ((2, 8, 8), 1.0))],
    "text alone": [(12,), (5,)],
}


def batch_of(name):
    torch.manual_seed(37)
    return [conversation(words, *shown) for words, *shown in BATCHES[name]]


def write_batch(path, samples):
    tensors = {}
    for row, sample in enumerate(samples):
        tensors |= {f"tokens.{row}": torch.tensor(sample["ids"]).float(), f"labels.{row}": torch.tensor(sample["labels"]).float()}
        if sample["shown"]:
            tensors |= {f"grids.{row}": torch.tensor([grid for grid, _ in sample["shown"]]).float(),
                        f"videos.{row}": torch.tensor([float(seconds is not None) for _, seconds in sample["shown"]]),
                        f"seconds.{row}": torch.tensor([1.0 if seconds is None else seconds for _, seconds in sample["shown"]]),
                        f"patches.{row}": torch.cat(sample["patches"])}
    save_file(tensors, path)


def inputs_of(samples):
    """As transformers takes them: padded on the right, pictures and videos apart."""
    longest = max(len(sample["ids"]) for sample in samples)
    padded = {"input_ids": 0, "labels": -100}
    rows = {key: torch.tensor([sample[own] + [pad] * (longest - len(sample["ids"])) for sample in samples])
            for (key, pad), own in zip(padded.items(), ("ids", "labels"), strict=True)}
    rows["attention_mask"] = torch.tensor([[1] * len(sample["ids"]) + [0] * (longest - len(sample["ids"])) for sample in samples])
    rows["mm_token_type_ids"] = (rows["input_ids"] == IMAGE).int() + 2 * (rows["input_ids"] == VIDEO).int()
    for kind, values, grids in ((False, "pixel_values", "image_grid_thw"), (True, "pixel_values_videos", "video_grid_thw")):
        shown = [(grid, seconds, patches) for sample in samples
                 for (grid, seconds), patches in zip(sample["shown"], sample["patches"], strict=True) if (seconds is not None) == kind]
        if shown:
            rows |= {values: torch.cat([patches for *_, patches in shown]), grids: torch.tensor([grid for grid, *_ in shown])}
            if kind:
                rows["second_per_grid_ts"] = torch.tensor([seconds for _, seconds, _ in shown])
    return rows


def probe(*words):
    done = subprocess.run([PROBE, *(str(word) for word in words)], text=True, timeout=SECONDS_MAX, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-3000:]


class Answer:
    """Numbers one behind the other; taken as they are compared."""
    def __init__(self, path):
        self.values, self.at = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32), 0

    def take(self, like):
        part = self.values[self.at : self.at + like.numel()].view(like.shape)
        self.at += like.numel()
        return part

    def equal(self, what, theirs):
        ours = self.take(theirs)
        assert torch.equal(ours, theirs.float()), (what, ours, theirs)

    def near(self, what, theirs, most=APART_MAX, where=None):
        ours, theirs = self.take(theirs), theirs.detach()
        if where is not None:
            ours, theirs = ours[where], theirs[where]
        apart = ((ours - theirs).abs().max() / theirs.abs().max()).item()
        assert apart <= most, (what, apart)
        return apart

    def ended(self):
        assert self.at == self.values.numel(), (self.at, self.values.numel())


def old_name(name):
    return re.sub(r"^model\.(visual\.)", r"\1", name).replace("model.language_model.", "model.")


def positions_of(model, inputs):
    if "image_grid_thw" not in inputs and "video_grid_thw" not in inputs:
        return (inputs["attention_mask"].cumsum(-1) - 1).mul(inputs["attention_mask"]).expand(3, -1, -1)
    asked = ("input_ids", "mm_token_type_ids", "image_grid_thw", "video_grid_thw", "second_per_grid_ts", "attention_mask")
    return model.model.get_rope_index(**{key: inputs[key] for key in asked if key in inputs})[0]


def compare(model, samples, answer):
    """Returns how far apart logits, loss and gradients are."""
    inputs, shown = inputs_of(samples), [shown for sample in samples for shown in sample["shown"]]
    answer.equal("positions", positions_of(model, inputs))
    if shown:
        grids, config = torch.tensor([grid for grid, _ in shown]), model.config.vision_config
        order, bounds = get_vision_window_index(grids, config.spatial_merge_size, config.window_size, config.patch_size)
        answer.equal("window index", order)
        answer.equal("windows", bounds)
        answer.equal("frames", get_vision_attention_seqlens(grids, config)[0])
        patches = torch.cat([patches for sample in samples for patches in sample["patches"]])
    else:
        answer.take(torch.zeros(2))  # an order of nothing, and two bounds at 0
    model.zero_grad()
    theirs = model(**inputs)
    theirs.loss.backward()
    apart = {}
    if shown:
        with torch.no_grad():
            apart["pictures"] = answer.near("pictures", model.model.visual(patches, grid_thw=grids).pooler_output)
    apart["logits"] = answer.near("logits", theirs.logits, where=inputs["attention_mask"].bool())
    apart["loss"] = answer.near("loss", theirs.loss)
    gradients = {old_name(name): parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    apart["gradients"] = max(answer.near(f"the gradient of {name}", gradients[name], GRADIENTS_APART_MAX) for name in sorted(gradients))
    answer.ended()
    return apart


def test_qwen_is_that_of_transformers(folder):
    for is_tied in (True, False):
        model = random_model(is_tied)
        model.save_pretrained(folder / f"tied-{is_tied}", max_shard_size="60KB")
        for name in BATCHES:
            samples = batch_of(name)
            write_batch(folder / "batch.safetensors", samples)
            (folder / "export").mkdir(exist_ok=True)
            probe("model", folder / f"tied-{is_tied}", folder / "batch.safetensors", folder / "answer", folder / "export")
            apart = compare(model, samples, Answer(folder / "answer"))
            print(f"      {name}, {'tied' if is_tied else 'untied'}: apart by at most "
                  + ", ".join(f"{most:.1e} in {what}" for what, most in apart.items()))
        again = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder / "export", output_loading_info=True)
        assert not any(again[1][flaw] for flaw in ("missing_keys", "unexpected_keys", "mismatched_keys")), again[1]
        theirs, ours = model.state_dict(), again[0].state_dict()
        assert theirs.keys() == ours.keys() and all(torch.equal(theirs[name], ours[name]) for name in theirs)
        assert again[0].config.tie_word_embeddings == is_tied


def test_qwen_of_new_names_and_bfloat16_is_the_same(folder):
    model, new = random_model(False), folder / "new"
    model.config.save_pretrained(new)
    rounded = {name: tensor.bfloat16() for name, tensor in model.state_dict().items()}
    assert any(name.startswith("model.language_model.") for name in rounded)
    save_file(rounded, new / "model.safetensors")
    model.load_state_dict({name: tensor.float() for name, tensor in rounded.items()})
    samples = batch_of("a video among pictures")
    write_batch(folder / "batch.safetensors", samples)
    (folder / "export").mkdir()
    probe("model", new, folder / "batch.safetensors", folder / "answer", folder / "export")
    compare(model, samples, Answer(folder / "answer"))


def test_qwen_of_full_width_is_the_same(folder):
    """A layer of each kind with the sizes of 3B, of few words."""
    model, samples = random_model(True, FULL_WIDTH), batch_of("partial windows")
    model.save_pretrained(folder / "model")
    write_batch(folder / "batch.safetensors", samples)
    (folder / "export").mkdir()
    probe("model", folder / "model", folder / "batch.safetensors", folder / "answer", folder / "export")
    apart = compare(model, samples, Answer(folder / "answer"))
    print("      apart by at most " + ", ".join(f"{most:.1e} in {what}" for what, most in apart.items()))


def test_qwen_goes_on_as_transformers_does(folder):
    for name in ("partial windows", "several pictures, padded", "text alone"):
        model, sample = random_model(False), batch_of(name)[0]
        with torch.no_grad():
            model.lm_head.weight[BEGIN:] = 0  # a trained model says no pads either
        model.save_pretrained(folder / "model")
        write_batch(folder / "batch.safetensors", [sample])
        probe("greedy", folder / "model", folder / "batch.safetensors", 20, folder / "answer")
        inputs = inputs_of([sample])
        inputs.pop("labels")
        said = model.generate(**inputs, do_sample=False, max_new_tokens=20, pad_token_id=0)[0, len(sample["ids"]) :]
        Answer(folder / "answer").equal(name, said)


def source_of(path, name):
    """A function out of a file of transformers that can't be imported here, as it needs Pillow."""
    found = next(node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef) and node.name == name)
    found.decorator_list = []
    place = {"math": math, "np": __import__("numpy"), "torch": torch}
    for argument in found.args.args:
        argument.annotation = None
    found.returns = None
    exec(compile(ast.Module([found], []), str(path), "exec"), place)  # noqa: S102 - of the pinned package
    return place[name]


PROCESSOR = pathlib.Path(inspect.getfile(transformers)).parent / "models/qwen2_vl/image_processing_pil_qwen2_vl.py"
VIDEO_PROCESSOR = PROCESSOR.parent / "video_processing_qwen2_vl.py"


def sizes_cases():
    chance = random.Random(41)
    fixed = [(1, 1), (28, 28), (42, 42), (70, 70), (3, 20000), (100, 20000), (100, 20001), (4000, 3000)]
    drawn = [(chance.randint(1, 3000), chance.randint(1, 3000)) for _ in range(60)]
    bounds = [(3136, 1003520), (3136, 12845056), (3136, 451584), (50176, 200704)]
    return [[*sides, *bounds[at % len(bounds)]] for at, sides in enumerate(fixed + drawn)]


def expected_size(smart_resize, case):
    try:
        height, width = smart_resize(case[0], case[1], 28, case[2], case[3])
    except ValueError:
        return None
    return [height, width, height * width // 784]


def conversation_case(chance):
    """Turns as we take them, and messages as the template does."""
    words = ["left", "right", "go", "stop", "42", "\n", " ", "  ", "é", "门", "!", "<", "|", "image", "turn"]
    text = lambda: "".join(chance.choice(words) + chance.choice(["", " "]) for _ in range(chance.randint(0, 8)))  # noqa: E731
    turns, messages, vision = [], [], []
    if chance.random() < 0.5:
        turns.append(["system", text()])
        messages.append({"role": "system", "content": [{"type": "text", "text": turns[-1][1]}]})
    for _ in range(chance.randint(1, 3)):
        parts = []
        for _ in range(chance.randint(1, 4)):
            kind = chance.choice(["text", "text", "image", "video"])
            parts.append({"type": kind, "text": text() if kind == "text" else f"<{kind}>"})
            if kind != "text":
                vision.append([kind == "video", chance.randint(1, 9)])
        answer = text()
        turns += [["user", "".join(part["text"] for part in parts)], ["assistant", answer]]
        messages += [{"role": "user", "content": parts}, {"role": "assistant", "content": [{"type": "text", "text": answer}]}]
    return {"turns": turns, "vision": vision, "open": chance.random() < 0.2}, messages


def word_ids(text):
    """The probe's tokenizer, written again."""
    ids = []
    for run in re.findall(rb"[A-Za-z]+|[^A-Za-z]", text.encode(), re.DOTALL):
        value = run[0]
        for byte in run[1:]:
            value = (value * 31 + byte) % 100_000
        ids.append(value)
    return ids


def expected_chat(case, messages):
    rendered = jinja2.Environment().from_string(TEMPLATE).render(messages=messages, add_generation_prompt=case["open"])
    vision, ids, labels = iter(case["vision"]), [], []
    for piece in re.split("(" + "|".join(re.escape(mark) for mark in SPECIAL) + ")", rendered):
        own = [SPECIAL[piece]] if piece in SPECIAL else word_ids(piece)
        if piece in ("<|image_pad|>", "<|video_pad|>"):
            own *= next(vision)[1]
        ids += own
    turns = [at for at, value in enumerate(ids) if value == SPECIAL["<|im_start|>"]] + [len(ids)]
    for begin, end in zip(turns, turns[1:], strict=False):
        is_answer = ids[begin + 1] == word_ids("assistant")[0] and not (case["open"] and end == len(ids))
        labels += [-100] * min(3, end - begin) + (ids[begin + 3 : end] if is_answer else [-100] * (end - begin - 3))
    return [ids, labels]


def patches_case(chance, frames):
    height, width = 28 * chance.randint(1, 3), 28 * chance.randint(1, 3)
    return {"frames": frames, "height": height, "width": width, "pixels": [chance.randrange(256) for _ in range(frames * 3 * height * width)]}


def test_qwen_rules_are_those_of_transformers(folder):
    chance = random.Random(43)
    sizes, chats = sizes_cases(), [conversation_case(chance) for _ in range(200)]
    patches = [patches_case(chance, 1) for _ in range(4)]
    (folder / "cases").write_text(json.dumps({"sizes": sizes, "chats": [case for case, _ in chats], "patches": patches}))
    probe("rules", folder / "cases", folder / "answer")
    answer = json.loads((folder / "answer").read_text())
    smart_resize = source_of(PROCESSOR, "smart_resize")
    for case, ours in zip(sizes, answer["sizes"], strict=True):
        assert ours == expected_size(smart_resize, case), (case, ours)
    for (case, messages), ours in zip(chats, answer["chats"], strict=True):
        theirs = expected_chat(case, messages)
        assert ours == theirs, (case, ours, theirs)
    patchify = source_of(PROCESSOR, "patchify")
    mean, deviation = torch.tensor([0.48145466, 0.4578275, 0.40821073]), torch.tensor([0.26862954, 0.26130258, 0.27577711])
    for case, ours in zip(patches, answer["patches"], strict=True):
        image = torch.tensor(case["pixels"]).view(3, case["height"], case["width"]) / 255
        scaled = (image - mean[:, None, None]) / deviation[:, None, None]
        theirs = torch.from_numpy(patchify(None, scaled.numpy(), 14, 2, 2)[0].copy()).flatten()
        assert (torch.tensor(ours) - theirs).abs().max() < 1e-5
    print(f"      {len(sizes)} sizes, {len(chats)} conversations")


def random_merger(features, hidden, width):
    sizes = {"ln_q.weight": [features], "mlp.0.weight": [hidden, 4 * features], "mlp.0.bias": [hidden], "mlp.2.weight": [width, hidden],
             "mlp.2.bias": [width]}
    return {f"merger.{name}": torch.randn(size) / (size[-1] ** 0.5 if len(size) > 1 else 1) for name, size in sizes.items()}


def compare_vggt(folder, shape, scenes):
    """Returns how far apart the two are."""
    weights = vggt_model.random_weights(shape)
    save_file(weights, folder / "vggt.safetensors")
    torch.save(weights, folder / "vggt.pt")
    given = {f"frames.{number}": torch.rand(sizes) for number, sizes in enumerate(scenes)}
    merger = random_merger(2 * shape.width, 48, 64)
    save_file(given | merger, folder / "batch.safetensors")
    farthest = 0
    for name in ("vggt.safetensors", "vggt.pt"):
        probe("vggt", folder / name, folder / "batch.safetensors", folder / "answer")
        answer = Answer(folder / "answer")
        for frames in given.values():
            for is_causal in (False, True):
                farthest = max(farthest, answer.near("tokens", vggt_model.tokens(frames, weights, is_causal, shape)[-1]))
                farthest = max(farthest, answer.near("newest", vggt_model.newest(frames, weights, is_causal, shape)))
        features = vggt_model.newest(given["frames.0"], weights, True, shape)[0]
        rows, columns = (side // shape.patch for side in scenes[0][-2:])
        farthest = max(farthest, answer.near("geometry", vggt_model.geometry(features, rows, columns, merger)))
        answer.ended()
    return farthest


def test_vggt_is_the_one_of_the_facts(folder):
    scenes = [(1, 3, 3, 56, 84), (2, 1, 3, 42, 42), (1, 8, 3, 28, 56), (1, 2, 3, 42, 28)]
    small = compare_vggt(folder, vggt_model.Shape, scenes)
    full = compare_vggt(folder, vggt_model.FullWidth, [(1, 2, 3, 56, 84)])
    print(f"      apart by at most {small:.1e}, of full width {full:.1e}")
