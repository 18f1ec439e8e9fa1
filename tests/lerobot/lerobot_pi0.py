"""The models of pi0 and pi05 of LeRobot 0.6.1: its own code, on transformers, in the shapes that the trainer calls pi0-dummy and pi05-dummy.
By the Python of tools/lerobot; the published size by any Python with LeRobot and transformers."""
import importlib
import importlib.util
import pathlib
import sys
import types
import typing

from transformers import masking_utils

WIDTH, HIDDEN, LAYERS, HEADS, HEAD_WIDTH = 64, 128, 4, 8, 16  # of both towers
VISION = {"hidden_size": 32, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 2, "patch_size": 14, "projection_dim": WIDTH}


def lerobots_folder():
    """Where tools/lerobot has put it, or of what is installed."""
    own = pathlib.Path(sys.executable).parent.parent / "policies/lerobot"
    return own if own.exists() else pathlib.Path(importlib.util.find_spec("lerobot").origin).parent


def module_of(kind):
    """modeling_pi0 or modeling_pi05, without what LeRobot's packages import beside it: that is for Python 3.12, or not installed."""
    def put(name, path=None, **names):
        module = types.ModuleType(name)
        module.__dict__.update(names)
        if path is not None:
            module.__path__ = [str(path)]
        sys.modules[name] = module

    folder = lerobots_folder()
    put("lerobot", folder)
    for package in ("policies", "policies/common", f"policies/{kind}", "policies/rtc", "utils"):
        put("lerobot." + package.replace("/", "."), folder / package)
    put("lerobot.utils.import_utils", _transformers_available=True, require_package=lambda *_: None)
    put("lerobot.configs", PreTrainedConfig=object)
    put("lerobot.policies.pretrained", PreTrainedPolicy=object, T=typing.TypeVar("T"))
    put("lerobot.policies.rtc.modeling_rtc", RTCProcessor=object)
    put(f"lerobot.policies.{kind}.configuration_{kind}", DEFAULT_IMAGE_SIZE=224, PI0Config=object, PI05Config=object)
    gemma = importlib.import_module("lerobot.policies.pi_gemma")
    # It calls that of transformers 5.4; that of 5.23 has one argument less.
    gemma.create_causal_mask = lambda cache_position, **others: masking_utils.create_causal_mask(**others)
    return importlib.import_module(f"lerobot.policies.{kind}.modeling_{kind}")


def make(kind, side=224, vocabulary=257152, horizon=50, values=32):
    """PI0Pytorch or PI05Pytorch. Its shapes are words in its code; the places that read them are given others."""
    policy = module_of(kind)
    policy.get_gemma_config = lambda _: policy.GemmaConfig(WIDTH, LAYERS, HIDDEN, HEADS, 1, HEAD_WIDTH)
    whole_prefix, whole_expert = policy.PaliGemmaForConditionalGenerationWithPiGemma, policy.PiGemmaForCausalLM

    def prefix(config):
        for name, value in VISION.items():
            setattr(config.vision_config, name, value)
        config.text_config.vocab_size, config.text_config.pad_token_id = vocabulary, 0
        return whole_prefix(config=config)

    def expert(config):
        config.vocab_size, config.pad_token_id = vocabulary, 0
        return whole_expert(config=config)

    policy.PaliGemmaForConditionalGenerationWithPiGemma, policy.PiGemmaForCausalLM = prefix, expert
    return model_of(policy, kind, "", "", side, horizon, values)


def make_published(kind):
    """The same with all shapes as published."""
    return model_of(module_of(kind), kind, "gemma_2b", "gemma_300m", side=224, horizon=50, values=32)


def model_of(policy, kind, prefix, expert, side, horizon, values):
    return getattr(policy, f"{kind.upper()}Pytorch")(types.SimpleNamespace(
        paligemma_variant=prefix, action_expert_variant=expert, image_resolution=(side, side), dtype="float32", freeze_vision_encoder=False,
        train_expert_only=False, max_action_dim=values, max_state_dim=values, compile_model=False, chunk_size=horizon, min_period=4e-3,
        max_period=4.0, rtc_config=None, num_inference_steps=10, time_sampling_beta_alpha=1.5, time_sampling_beta_beta=1.0,
        time_sampling_scale=0.999, time_sampling_offset=0.001))


def published_name(name):
    """As checkpoints of openpi and LeRobot call a parameter; transformers 5 has one name less in the way to SigLIP."""
    return name.replace("vision_tower.", "vision_tower.vision_model.")
