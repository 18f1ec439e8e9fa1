"""A policy from a data set of LeRobot to its actions: `trainer train` and `trainer act`, with what goes wrong on the way."""
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import lerobot_pi0
import lerobot_test
import numpy as np
from lerobot_test import ACTION, SECONDS_MAX, STATE, TRAINER, run
from PIL import Image

HORIZON = 8  # of pi0-nano
CAMERAS = "top,wrist"


def setUpModule():
    lerobot_test.WORK = pathlib.Path(tempfile.mkdtemp(prefix="tj-policy-"))
    unittest.addModuleCleanup(shutil.rmtree, lerobot_test.WORK)
    lerobot_test.MODEL.clear()
    lerobot_test.make_set("v3.0", lerobot_test.SETS["v3.0"])


def lerobots_types():
    """The words of its configurations; the file stands alone."""
    spec = importlib.util.spec_from_file_location("lerobots_types", lerobot_pi0.lerobots_folder() / "configs/types.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


def data():
    return lerobot_test.WORK / "v3.0/set"


class Policy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=lerobot_test.WORK)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def train(self, out, *flags, ranks=1, steps=4, code=0, model="pi0-nano"):
        start = (TRAINER, "launch", "--nproc", ranks, "--") if ranks > 1 else ()
        return run(*start, TRAINER, "train", "--model", model, "--data", data(), "--tokenizer", lerobot_test.model(), "--cameras", CAMERAS,
                   "--batch-size", 4, "--steps", steps, "--lr", "1e-3", "--out", out, "--deterministic", "--threads", 1, "--tensorboard", "off",
                   "--progress-port", "off", *flags, code=code)

    @staticmethod
    def losses(out, event=None):
        """Of each step, or of each evaluation."""
        step, loss = ("at_step", "eval_loss") if event else ("step", "loss")
        lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
        return {line[step]: line[loss] for line in lines if line.get("event") == event and loss in line}

    def observation(self, **more):
        for camera, size in lerobot_test.CAMERAS.items():
            rows, columns = np.mgrid[0:size[0], 0:size[1]]
            Image.fromarray(np.stack([rows, columns, rows + columns], -1).astype(np.uint8)).save(self.folder / f"{camera.split('.')[-1]}.png")
        file = self.folder / "seen.json"
        file.write_text(json.dumps({"state": [0.5] * STATE, "task": "open the drawer", "images": {"top": "top.png", "wrist": "wrist.png"}} | more))
        return file

    def act(self, out, observation, *flags, text=None, code=0):
        done = subprocess.run([TRAINER, "act", "--from", out, "--observation", observation, "--threads", "1", *flags], input=text,
                              capture_output=True, text=True, cwd=self.folder, timeout=SECONDS_MAX, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr if code else [json.loads(line)["actions"] for line in done.stdout.splitlines()]


class Training(Policy):
    def test_ranks_and_a_resumed_run_have_the_same_bits(self):
        alone, pair, resumed = (self.folder / name for name in ("alone", "pair", "resumed"))
        flags = ("--held-out", 0.4, "--eval-every", 2, "--save-every", 2, "--keep", 0)
        self.train(alone, *flags)
        self.train(pair, *flags, ranks=2)
        shutil.copytree(alone / "step-000002", resumed / "step-000002")
        self.train(resumed, *flags, "--resume")
        self.assertEqual(len(self.losses(alone)), 4)
        self.assertEqual(self.losses(alone), self.losses(pair))
        self.assertEqual({step: loss for step, loss in self.losses(alone).items() if step > 2}, self.losses(resumed))
        held_out = self.losses(alone, "eval")
        self.assertEqual(list(held_out), [2, 4])
        np.testing.assert_allclose([*held_out.values()], [*self.losses(pair, "eval").values()], rtol=1e-6)

    def test_held_out_episodes_tell_the_error_of_sampled_actions(self):
        for ranks, stage in ((1, 0), (2, 0), (2, 3)):
            said = self.train(self.folder / f"{ranks}-{stage}", "--held-out", 0.4, "--eval-every", 2, "--zero", stage, ranks=ranks)
            self.assertRegex(said, r"eval after step 2 \| loss \S+ \| action error \d+\.\d+ \| ")
        alone, *others = ([self.action_errors(self.folder / out) for out in ("1-0", "2-0", "2-3")])
        self.assertEqual(len(alone), 2)
        for errors in others:
            np.testing.assert_allclose(errors, alone, rtol=1e-6)

    @staticmethod
    def action_errors(out):
        lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
        return [line["eval_action_error"] for line in lines if line.get("event") == "eval"]

    def test_lerobot_is_told_by_what_the_policy_normalises(self):
        modes = {mode.value for mode in lerobots_types().NormalizationMode}
        made = self.folder / "made"
        run(TRAINER, "prepare", "lerobot", "--input", data(), "--out", made)
        for model, flags, mode in (("pi0-nano", (), "MEAN_STD"), ("pi0-nano", ("--normalisation", "none"), "IDENTITY"),
                                   ("pi0-nano", ("--normalisation", "quantiles", "--statistics", made / "trainer_stats.json"), "QUANTILES"),
                                   ("pi05-nano", ("--normalisation", "mean-std", "--prompt-tokens", 120), "MEAN_STD")):
            with self.subTest(model=model, flags=flags):
                out = self.folder / f"{model}-{mode}"
                self.train(out, *flags, steps=1, model=model)
                told = json.loads((out / "step-000001/config.json").read_text())["normalization_mapping"]
                self.assertEqual(told, {"VISUAL": "IDENTITY", "STATE": mode, "ACTION": mode})
                self.assertLessEqual(set(told.values()), modes)

    def test_groups_frozen_parts_and_adapters(self):
        groups = [self.folder / f"group-{size}" for size in (1, 2)]
        for size, out in zip((1, 2), groups, strict=True):
            self.train(out, "--zero", 3, "--zero-group", size, ranks=2)
        self.assertEqual(*map(self.losses, groups))
        for number, flags in enumerate((("--freeze", "paligemma_with_expert.paligemma.*"), ("--lora", 4, "--lora-targets", "*gemma_expert*q_proj.weight"))):
            self.train(self.folder / f"tuned-{number}", *flags)

    def test_a_pi05_has_quantiles(self):
        made = self.folder / "made"
        run(TRAINER, "prepare", "lerobot", "--input", data(), "--out", made)
        said = self.train(self.folder / "out", "--statistics", made / "trainer_stats.json", "--prompt-tokens", 120, model="pi05-nano")
        self.assertIn("quantiles", said)
        self.assertEqual(np.shape(self.act(self.folder / "out", self.observation())), (1, HORIZON, ACTION))

    def test_what_does_not_fit_is_named(self):
        for flags, wanted in ((("--camera-map", "top=observation.images.nowhere"), "observation.images.nowhere"),
                              (("--cameras", "left,right"), "none of its cameras is named as one of the policy's"),
                              (("--prompt-tokens", 3), "task 0: "), (("--action-dim", 5), "its action has 6 numbers, and the policy takes 5"),
                              (("--statistics", self.folder / "none.json"), "none.json"), (("--vocabulary", 100), "the policy knows 100")):
            with self.subTest(flags):
                self.assertIn(wanted, self.train(self.folder / "out", *flags, code=78 if flags[0] == "--vocabulary" else 65))


class Acting(Policy):
    def test_a_chunk_of_each_observation(self):
        out = self.folder / "out"
        self.train(out)
        file = self.observation()
        (once,) = self.act(out, file)
        self.assertEqual(np.shape(once), (HORIZON, ACTION))
        self.assertEqual([once], self.act(out, file), "the same seed gives the same actions")
        line = json.dumps(json.loads(file.read_text())) + "\n"
        first, second = self.act(out, "-", text=line * 2)
        self.assertEqual(first, once)
        self.assertNotEqual(second, first, "each observation has noise of its own")
        (other,) = self.act(out, file, "--seed", "7")
        self.assertNotEqual(other, once)
        (blind,) = self.act(out, self.observation(images={}))
        self.assertNotEqual(blind, once, "the policy sees its cameras")

    def test_actions_minus_the_state_are_given_as_the_robot_takes_them(self):
        out = self.folder / "out"
        self.train(out, "--delta-actions", 5, "--normalisation", "none", steps=1)
        still = {"images": {}, "state": [0.0] * STATE}
        moved = {"images": {}, "state": [1000.0] * STATE}  # far beyond what the policy says
        (low,), (high,) = (self.act(out, self.observation(**seen)) for seen in (still, moved))
        self.assertTrue((np.array(high)[:, :5] > 500).all() and (np.abs(np.array(low)) < 500).all())
        self.assertTrue((np.abs(np.array(high)[:, 5]) < 500).all())

    def test_what_is_wrong_is_named_with_its_place(self):
        out = self.folder / "out"
        self.train(out, steps=1)
        text = self.folder / "seen.json"
        for changes, wanted in (({"state": [1.0]}, f"state: has 1 numbers; the policy was trained with {STATE}"),
                                ({"state": ["x"] * STATE}, 'state[0] must be a number, and is "x"'), ({"task": None}, "task"),
                                ({"task": "word " * 500}, "task: "), ({"images": {"nose": "top.png"}}, "images.nose: is no camera of the policy; it has top, wrist"),
                                ({"images": {"top": "none.png"}}, "none.png"), ({"images": {"top": "seen.json"}}, "seen.json"), ({"speed": 1}, "speed: is no field")):
            with self.subTest(changes):
                said = self.act(out, self.observation(**changes), code=65)
                self.assertIn(str(text), said)
                self.assertIn(wanted, said)
        good = json.dumps({"state": [0.0] * STATE, "task": "x"})
        self.assertIn("line 2: the observation: is no JSON object", self.act(out, "-", text=good + "\n{\n", code=65))
        self.assertIn("longer than", self.act(out, "-", text="x" * (2 << 20), code=65))
        checkpoint = out / "step-000001"
        policy = checkpoint / "policy.json"
        good = json.loads(policy.read_text())
        deep = '{"state": ' + "[" * 2_000_000
        for damaged, wanted in ((json.dumps(good | {"normalisation": "least"}), 'normalisation must be mean-std, quantiles or none, and is "least"'),
                                (json.dumps(good | {"normalisation": good}), "normalisation must be text"), (deep, "is no JSON object"),
                                (deep + "]" * 2_000_000 + "}", "is missing"), (json.dumps(good | {"may_cut_prompts": 1}), "may_cut_prompts must be true or false")):
            policy.write_text(damaged)
            said = self.act(checkpoint, text, code=65)
            self.assertIn("policy.json", said)
            self.assertIn(wanted, said)
