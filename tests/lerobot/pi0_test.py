"""Our pi0 and pi05 beside LeRobot's own: weights, batches, noise and times are the same and at random."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import lerobot_pi0  # noqa: E402
from support.places import BUILD  # noqa: E402

PROBE = BUILD / "tests/interop/trainer_probe"
SECONDS_MAX = 240
APART_MAX = 1e-4  # of the largest value of each tensor
SAMPLES, CAMERAS, SIDE, HORIZON, VALUES, VOCABULARY = 2, 3, 224, 50, 32, 257152
PROMPT = {"pi0": 48, "pi05": 200}
UNUSED = "lm_head"  # in LeRobot's modules, and in no pass


def random_model(kind):
    """No tensor is zero, as published ones begin: zeros hide mistakes."""
    torch.manual_seed(11)
    model = lerobot_pi0.make(kind).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 1 / parameter[0].numel() ** 0.5 if parameter.dim() > 1 else 0.1)
    return model


def random_batch(kind):
    """A camera of one sample is masked, and one prompt is padded."""
    image_mask = torch.ones(SAMPLES, CAMERAS, dtype=torch.bool)
    image_mask[1, 0] = False
    lengths = torch.tensor([PROMPT[kind], 3])
    return {"images": torch.rand(SAMPLES, CAMERAS, 3, SIDE, SIDE) * 2 - 1, "image_mask": image_mask,
            "tokens": torch.randint(0, VOCABULARY, (SAMPLES, PROMPT[kind])), "token_mask": torch.arange(PROMPT[kind]) < lengths[:, None],
            "state": torch.randn(SAMPLES, VALUES), "actions": torch.randn(SAMPLES, HORIZON, VALUES),
            "noise": torch.randn(SAMPLES, HORIZON, VALUES), "time": torch.tensor([0.37, 1.0])}


def theirs_of(kind, model, batch):
    """What the probe answers, in its order: gradients by published name, of what gets one."""
    seen = [batch["images"].unbind(1), batch["image_mask"].unbind(1), batch["tokens"], batch["token_mask"]]
    state = [batch["state"]] if kind == "pi0" else []
    share = batch["time"][:, None, None]
    noisy = share * batch["noise"] + (1 - share) * batch["actions"]
    loss = model(*seen, *state, batch["actions"], batch["noise"], batch["time"]).mean()
    by_name = dict(sorted((lerobot_pi0.published_name(name), parameter) for name, parameter in model.named_parameters()))
    gradients = torch.autograd.grad(loss, list(by_name.values()), allow_unused=True)
    with torch.no_grad():
        found = [("the prefix", model.embed_prefix(*seen)[0]), ("the suffix", model.embed_suffix(*state, noisy, batch["time"])[0]),
                 ("the loss", loss.detach()), ("the actions", model.sample_actions(*seen, *state, noise=batch["noise"]))]
    return found + [(f"the gradient of {name}", gradient) for name, gradient in zip(by_name, gradients, strict=True)
                    if gradient is not None and gradient.any()]


class Policies(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tj-pi0-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def ours_of(self, kind, model, batch):
        weights, given, answer = (self.folder / name for name in ("weights.safetensors", "batch.safetensors", "answer"))
        save_file({lerobot_pi0.published_name(name): tensor.contiguous() for name, tensor in model.state_dict().items() if UNUSED not in name}, weights)
        save_file({name: tensor.float().contiguous() for name, tensor in batch.items()}, given)
        done = subprocess.run([PROBE, "pi0", f"{kind}-dummy", weights, given, answer], text=True, timeout=SECONDS_MAX, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        return torch.frombuffer(bytearray(answer.read_bytes()), dtype=torch.float32)

    def test_they_compute_what_lerobots_compute(self):
        for kind in PROMPT:
            with self.subTest(kind):
                model, batch = random_model(kind), random_batch(kind)
                answer, at, farthest = self.ours_of(kind, model, batch), 0, {}
                for what, theirs in theirs_of(kind, model, batch):
                    ours = answer[at:at + theirs.numel()].view(theirs.shape)
                    at += theirs.numel()
                    # Of keys' biases all scores of a query change alike: their gradient is rounding.
                    largest = 1e-2 if "k_proj.bias" in what else theirs.abs().max()
                    apart = ((ours - theirs).abs().max() / largest).item()
                    self.assertLessEqual(apart, APART_MAX, what)
                    group = "gradients" if "gradient" in what else what
                    farthest[group] = max(farthest.get(group, 0), apart)
                self.assertEqual(at, answer.numel(), "and no tensor more")
                print(f"      {kind}: apart by at most " + ", ".join(f"{most:.1e} in {what}" for what, most in farthest.items()))
