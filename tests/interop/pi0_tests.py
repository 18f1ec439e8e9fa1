"""Our pi0 and pi05 beside an implementation of their own in PyTorch. Part of tests/interop/run."""
import pathlib
import subprocess

import torch
from safetensors.torch import save_file
from transformers import GemmaForCausalLM, PaliGemmaForConditionalGeneration
from transformers.models.auto import CONFIG_MAPPING
from transformers.models.gemma import modeling_gemma

import pi0_model

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = ROOT / "build/dev/tests/interop/trainer_probe"
SECONDS_MAX = 240
APART_MAX = 1e-4  # of the largest value of each tensor
SAMPLES = 3
HEAD = "paligemma_with_expert.paligemma.lm_head.weight"
WORDS = "paligemma_with_expert.paligemma.model.language_model.embed_tokens.weight"


def random_model(variant):
    """No tensor is zero, as published ones begin: zeros hide mistakes."""
    torch.manual_seed(11)
    model = pi0_model.Pi0(variant)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 1 / parameter[0].numel() ** 0.5 if parameter.dim() > 1 else 0.1)
    return model


def random_batch(model):
    """A camera of one sample is masked, one prompt is full and the others are padded."""
    image_mask = torch.ones(SAMPLES, model.cameras, dtype=torch.bool)
    image_mask[1, 0] = False
    lengths = torch.tensor([model.prompt, 3, 1])
    return {"images": torch.rand(SAMPLES, model.cameras, 3, model.side, model.side) * 2 - 1, "image_mask": image_mask,
            "tokens": torch.randint(0, 1024, (SAMPLES, model.prompt)), "token_mask": torch.arange(model.prompt) < lengths[:, None],
            "state": torch.randn(SAMPLES, model.values), "actions": torch.randn(SAMPLES, model.horizon, model.values),
            "noise": torch.randn(SAMPLES, model.horizon, model.values), "time": torch.tensor([0.001, 0.37, 1.0])}


def answers(variant, weights, batch, folder):
    save_file({name: tensor.float().contiguous() for name, tensor in batch.items()}, folder / "batch.safetensors")
    done = subprocess.run([PROBE, "pi0", variant, weights, folder / "batch.safetensors", folder / "answer"], text=True, timeout=SECONDS_MAX,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-3000:]
    return torch.frombuffer(bytearray((folder / "answer").read_bytes()), dtype=torch.float32)


def expected_of(model, batch):
    """What the probe answers, in its order: gradients by name, of what gets one."""
    draw = batch["actions"], batch["noise"], batch["time"]
    noisy = batch["time"][:, None, None] * batch["noise"] + (1 - batch["time"][:, None, None]) * batch["actions"]
    loss = model.loss(batch, *draw)
    by_name = dict(sorted(model.named_parameters()))
    gradients = torch.autograd.grad(loss, list(by_name.values()), allow_unused=True)
    expected = [("the prefix", model.prefix(batch)[0]), ("the suffix", model.suffix(batch["state"], noisy, batch["time"])[0]),
                ("the loss", loss), ("the actions", model.sample(batch, batch["noise"]))]
    return expected + [(f"the gradient of {name}", gradient) for name, gradient in zip(by_name, gradients, strict=True)
                       if gradient is not None and gradient.any()]


def test_pi0_is_the_one_of_the_facts(folder):
    for variant in pi0_model.SHAPES:
        model = random_model(variant)
        batch = random_batch(model)
        save_file(model.state_dict(), folder / "weights.safetensors")
        answer = answers(variant, folder / "weights.safetensors", batch, folder)
        at, farthest = 0, {}
        expected = expected_of(model, batch)
        for what, theirs in expected:
            theirs = theirs.detach()
            ours = answer[at : at + theirs.numel()].view(theirs.shape)
            at += theirs.numel()
            # Of keys' biases all scores of a query change alike: their gradient is rounding.
            largest = 1e-2 if "k_proj.bias" in what else theirs.abs().max()
            apart = ((ours - theirs).abs().max() / largest).item()
            assert apart <= APART_MAX, (variant, what, apart)
            kind = "gradients" if "gradient" in what else what
            farthest[kind] = max(farthest.get(kind, 0), apart)
        assert at == answer.numel(), (variant, at, answer.numel())
        unused = sum(1 for _ in model.parameters()) - (len(expected) - 4)
        assert unused == 7, f"{unused} tensors without a gradient"
        print(f"      {variant}: apart by at most " + ", ".join(f"{most:.1e} in {what}" for what, most in farthest.items()))


def test_pi0_in_files_of_lerobot_is_the_same(folder):
    for variant in pi0_model.SHAPES:
        model = random_model(variant)
        batch = random_batch(model)
        state = model.state_dict()
        save_file(state, folder / "openpi.safetensors")
        lerobot = {"model." + (HEAD if name == WORDS else name): tensor for name, tensor in state.items()}
        lerobot["model.paligemma_with_expert.gemma_expert.lm_head.weight"] = torch.zeros(1024, model.expert_width)
        (folder / variant).mkdir()
        save_file(lerobot, folder / variant / "model.safetensors")
        same = [answers(variant, weights, batch, folder) for weights in (folder / "openpi.safetensors", folder / variant)]
        assert torch.equal(*same), variant


def layers_of_transformers(model):
    """The same weights in PaliGemma and Gemma of transformers, of which openpi and LeRobot are made."""
    paligemma, expert = CONFIG_MAPPING["paligemma"](), model.towers()[1]
    heads = {"num_attention_heads": model.heads, "num_key_value_heads": 1, "head_dim": model.head_width, "vocab_size": 1024,
             "hidden_activation": "gelu_pytorch_tanh"}
    sizes = {"num_hidden_layers": len(expert.layers)}
    (vision,), words = model.vision, model.towers()[0]
    width = words.embed_tokens.embedding_dim
    text, image = paligemma.text_config, paligemma.vision_config
    for name, value in {**heads, **sizes, "hidden_size": width, "intermediate_size": words.layers[0].mlp.up_proj.out_features}.items():
        setattr(text, name, value)
    for name, value in {"image_size": model.side, "patch_size": model.patch, "num_hidden_layers": len(vision.encoder.layers),
                        "num_attention_heads": model.vision_heads, "hidden_size": vision.post_layernorm.weight.numel(),
                        "intermediate_size": vision.encoder.layers[0].mlp.fc1.out_features, "projection_dim": width}.items():
        setattr(image, name, value)
    paligemma.projection_dim = paligemma.hidden_size = width
    towers = [PaliGemmaForConditionalGeneration(paligemma),
              GemmaForCausalLM(CONFIG_MAPPING["gemma"](hidden_size=model.expert_width, **heads, **sizes,
                                                       intermediate_size=expert.layers[0].mlp.up_proj.out_features))]
    towers[1].model.embed_tokens = None
    prefixes = "paligemma_with_expert.paligemma.", "paligemma_with_expert.gemma_expert."
    for tower, prefix in zip(towers, prefixes, strict=True):
        state = {name.removeprefix(prefix).replace("vision_model.", ""): tensor for name, tensor in model.state_dict().items()
                 if name.startswith(prefix)}
        missing, unexpected = tower.load_state_dict(state, strict=False)
        assert (missing, unexpected) == (["lm_head.weight"], []), (missing, unexpected)
    return towers


@torch.no_grad()
def test_the_pi0_beside_ours_computes_what_layers_of_transformers_do(folder):
    model = random_model("pi0-nano")
    batch = random_batch(model)
    paligemma, expert = layers_of_transformers(model)
    seen = paligemma.model.get_image_features(batch["images"][:, 1])
    assert torch.allclose(getattr(seen, "pooler_output", seen), model.of_image(batch["images"][:, 1]), atol=1e-5)
    prefix, valid, begins = model.prefix(batch)
    suffix, more, _ = model.suffix(batch["state"], batch["noise"], batch["time"])
    valid = torch.cat([valid, torch.ones(suffix.shape[:2], dtype=torch.bool)], dim=1)
    mask = torch.where(pi0_model.who_sees_whom(valid, begins + more)[:, None], 0.0, pi0_model.HIDDEN)
    towers, streams = [paligemma.model.language_model, expert.model], [prefix, suffix]
    turns = towers[0].rotary_emb(prefix, valid.long().cumsum(dim=1) - 1)
    for layers in zip(*(tower.layers for tower in towers), strict=True):
        normed = [layer.input_layernorm(x) for layer, x in zip(layers, streams, strict=True)]
        q, k, v = (torch.cat([getattr(layer.self_attn, name)(x).unflatten(-1, (-1, model.head_width)).transpose(1, 2)
                              for layer, x in zip(layers, normed, strict=True)], dim=2) for name in ("q_proj", "k_proj", "v_proj"))
        attention = layers[0].self_attn
        mixed, _ = modeling_gemma.eager_attention_forward(attention, *modeling_gemma.apply_rotary_pos_emb(q, k, *turns), v, mask,
                                                          attention.scaling)
        parts = mixed.flatten(2).split([x.shape[1] for x in streams], dim=1)
        streams = [x + layer.self_attn.o_proj(part) for layer, x, part in zip(layers, streams, parts, strict=True)]
        streams = [x + layer.mlp(layer.post_attention_layernorm(x)) for layer, x in zip(layers, streams, strict=True)]
    velocity = model.action_out_proj(towers[1].norm(streams[1])[:, -model.horizon :])
    apart = (velocity - model.velocity(batch, batch["noise"], batch["time"])).abs().max().item()
    assert apart < 1e-5, apart
