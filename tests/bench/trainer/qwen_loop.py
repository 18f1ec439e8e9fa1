"""Trains the Qwen2.5-VL of transformers on conversations whose pictures were decoded beforehand, by itself or under torchrun with
FSDP2: the trainer's contender. Loop and optimizer are torch_loop's. Rank 0 prints a line for each step.

  qwen_loop.py --shape mid --make --folder FOLDER      FOLDER/model as transformers saves it, FOLDER/vggt.safetensors, FOLDER/sizes.json
  qwen_loop.py --shape mid --folder FOLDER --data DATA --scale 2 --batch-size 4 --steps 5 --cores 0,1

DATA is of qwen_data.write(). With weights in FOLDER/model it begins with them, without at random.
"""
import argparse
import itertools
import json
import os
import pathlib
import struct
import sys
import zlib

import numpy
import qwen_data
import torch
import torch.distributed as dist
import torch_loop
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

# Of Qwen's preprocessor_config.json.
MEAN, DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=tuple(qwen_data.SHAPES), required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--make", action="store_true", help="write the weights, at random, and train nothing")
    parser.add_argument("--data", type=pathlib.Path)
    for name in ("batch-size", "steps", "scale", "history"):
        parser.add_argument(f"--{name}", type=int, default=1)
    parser.add_argument("--cores", default="", help="a core for each rank, with commas; empty: any")
    parser.add_argument("--recompute", action="store_true", help="transformers' gradient checkpointing")
    torch_loop.add_common_flags(parser)
    return parser.parse_args()


def new_model(shape):
    special = shape.special
    return Qwen2_5_VLForConditionalGeneration(Qwen2_5_VLConfig(
        text_config=shape.text, vision_config=shape.vision, tie_word_embeddings=True, image_token_id=special["<|image_pad|>"],
        video_token_id=special["<|video_pad|>"], vision_start_token_id=special["<|vision_start|>"],
        vision_end_token_id=special["<|vision_end|>"]))


def make(shape, folder):
    import vggt_model
    from safetensors.torch import save_file
    torch.manual_seed(1337)
    model = new_model(shape)
    model.save_pretrained(folder / "model")
    weights = vggt_model.random_weights(type("Sizes", (vggt_model.Shape,), shape.vggt))
    weights = {name: tensor for name, tensor in weights.items() if name.startswith("aggregator.") and not name.endswith("mask_token")}
    save_file(weights, folder / "vggt.safetensors")
    sizes = {"qwen": sum(parameter.numel() for parameter in model.parameters()), "vggt": sum(map(torch.Tensor.numel, weights.values()))}
    (folder / "sizes.json").write_text(json.dumps(sizes))


def pixels_of(png):
    """uint8 [height, width, 3] of one that rooms.png() has made: a single chunk of data, rows without a filter."""
    width, height = struct.unpack(">II", png[16:24])
    (size,) = struct.unpack(">I", png[33:37])
    return numpy.frombuffer(zlib.decompress(png[41:41 + size]), numpy.uint8).reshape(height, 1 + 3 * width)[:, 1:].reshape(height, width, 3)


def patches_of(pixels):
    """float32 [patches, values]: those of one token stand behind each other, and a still picture counts as two frames."""
    side, rows, columns = qwen_data.PATCH, *(size // (2 * qwen_data.PATCH) for size in pixels.shape[:2])
    scaled = ((pixels.astype(numpy.float32) / 255 - numpy.array(MEAN, numpy.float32)) / numpy.array(DEVIATION, numpy.float32)).transpose(2, 0, 1)
    frames = numpy.stack([scaled, scaled]).reshape(2, 3, rows, 2, side, columns, 2, side)
    return torch.from_numpy(frames.transpose(2, 5, 3, 6, 1, 0, 4, 7).reshape(4 * rows * columns, -1).copy())


class Samples:
    """Those of one rank, again and again in their order."""
    def __init__(self, asked, shape, rank, ranks):
        work = qwen_data.Work(0, asked.history, asked.scale)
        texts = list(qwen_data.encoded(asked.data, shape, work))
        self.per_pass = asked.batch_size // ranks // asked.accumulation
        # Of a whole step over all ranks: the mean over its tokens, however they are shared out.
        first = list(itertools.islice(itertools.cycle(texts), asked.batch_size))
        self.learned = sum(label != qwen_data.NOT_LEARNED for _, labels in first for label in labels)
        self.ranks, self.passes, self.pad = ranks, asked.accumulation, shape.special["<|endoftext|>"]
        self.image, self.side = shape.special["<|image_pad|>"], work.side // qwen_data.PATCH
        seen = {}
        own = []
        for (ids, labels), conversation in list(zip(texts, qwen_data.read(asked.data)))[rank::ranks]:
            names = conversation["images"]
            for name in names:
                if name not in seen:
                    seen[name] = patches_of(pixels_of((asked.data / "set" / name).read_bytes()))
            own.append((ids, labels, [seen[name] for name in names]))
        self.next = itertools.cycle(own)

    def loss(self, model, device):
        """Summed over the tokens of the pass; over all passes and ranks, whose gradients are averaged, it is the mean of the step."""
        chosen = list(itertools.islice(self.next, self.per_pass))
        longest = max(len(ids) for ids, _, _ in chosen)

        def padded(values, pad):
            return torch.tensor([each + [pad] * (longest - len(each)) for each in values]).to(device, non_blocking=True)
        ids = padded([ids for ids, _, _ in chosen], self.pad)
        labels = padded([labels for _, labels, _ in chosen], qwen_data.NOT_LEARNED)
        patches = [each for _, _, pictures in chosen for each in pictures]
        logits = model(input_ids=ids, attention_mask=padded([[1] * len(ids) for ids, _, _ in chosen], 0),
                       mm_token_type_ids=(ids == self.image).int(), pixel_values=torch.cat(patches).to(device, non_blocking=True),
                       image_grid_thw=torch.tensor([[1, self.side, self.side]] * len(patches)).to(device), use_cache=False).logits
        summed = torch.nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1), labels[:, 1:].flatten(),
                                                   ignore_index=qwen_data.NOT_LEARNED, reduction="sum")
        return summed / self.learned * self.ranks * self.passes


def sharded(model, ranks):
    """FSDP2 over Gloo: each layer of both towers by itself, and the rest."""
    mesh = init_device_mesh("cpu", (ranks,))
    for block in (*model.model.visual.blocks, *model.model.language_model.layers):
        fully_shard(block, mesh=mesh, reshard_after_forward=True)
    return fully_shard(model, mesh=mesh, reshard_after_forward=True)


def train(asked, rank, ranks):
    shape = qwen_data.SHAPES[asked.shape]
    torch.manual_seed(1337)
    if (asked.folder / "model").exists():
        model = Qwen2_5_VLForConditionalGeneration.from_pretrained(asked.folder / "model", dtype=torch.float32)
    else:
        with torch.device(asked.device):
            model = new_model(shape)
    model = torch_loop.on_device(asked, model).train()
    if asked.recompute:
        model.gradient_checkpointing_enable()
    if ranks > 1:
        model = sharded(model, ranks)
    samples = Samples(asked, shape, rank, ranks)

    def over_ranks(loss):
        if ranks > 1:
            dist.all_reduce(loss)
        return loss / ranks
    torch_loop.train_steps(asked, model, lambda: samples.loss(model, asked.device), rank, over_ranks=over_ranks)
    if asked.device == "cuda":  # in the words of the trainer
        print(f"GPU memory: tensors took {torch.cuda.max_memory_allocated():,} bytes at most", flush=True)


def main():
    asked = flags()
    if asked.make:
        make(qwen_data.SHAPES[asked.shape], asked.folder)
        return 0
    rank, ranks = torch_loop.place()
    if asked.cores:
        os.sched_setaffinity(0, {int(asked.cores.split(",")[rank])})
    torch_loop.together(ranks, lambda: train(asked, rank, ranks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
