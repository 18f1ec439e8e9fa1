"""A policy learns from a recorded expert to bring the tip of an arm onto a disc, and is judged by doing it.

usage: arm_test.py [--long] [NAME...], by the Python of tools/lerobot
"""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

import acting
import arm
import example
import numpy as np
import pyarrow.parquet
import simulation
from simulation import HELD_OUT_SEED

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support import robot_arm, unittests  # noqa: E402
from support.places import BUILD  # noqa: E402

TRAINER = BUILD / "trainer/trainer"
TRAIN_SECONDS_MAX = 3600  # a busy machine


class Short:
    """Of the test that everybody runs: without Trained. Learning is for the two nodes there (tests/e2e/robot.py)."""
    recorded, simulated = 8, 40
    tests = ("Simulation", "Recorded", "Untrained")


class Long:
    recorded, simulated = 200, 100
    tests = (*Short.tests, "Trained")


SIZE = Short
STEPS = 1600
REACHED_UNTRAINED_MAX, REACHED_MIN = 0.05, 0.9


WORK = None  # a folder of this run, with the data set in it


def run_trainer(*words):
    robot_arm.said([TRAINER, *words], {"TRAININGJOB_TERMINATION_LOG": os.devnull}, TRAIN_SECONDS_MAX)


def setUpModule():
    global WORK
    WORK = pathlib.Path(tempfile.mkdtemp(prefix="tj-arm-"))
    unittest.addModuleCleanup(shutil.rmtree, WORK)
    robot_arm.record(sys.executable, WORK, SIZE.recorded)
    run_trainer("prepare", "lerobot", "--input", WORK / "set", *robot_arm.PREPARE_FLAGS)


class Simulation(unittest.TestCase):
    def test_the_expert_reaches_each_target_and_an_arm_at_rest_none(self):
        self.assertEqual(simulation.reached(simulation.ends(simulation.expert, 100, HELD_OUT_SEED)), 1)
        self.assertEqual(simulation.reached(simulation.ends(simulation.at_rest, 100, HELD_OUT_SEED)), 0)

    def test_motors_and_joints_have_limits(self):
        scene = arm.begin(0, HELD_OUT_SEED)
        before = scene.joints.copy()
        scene.move([9, -9])
        np.testing.assert_allclose(scene.joints - before, [arm.STEP_MAX, -arm.STEP_MAX])
        for _ in range(100):
            scene.move([9, -9])
        np.testing.assert_allclose(scene.joints, [arm.LIMITS[0][1], arm.LIMITS[1][0]])

    def test_pictures_show_where_the_target_is(self):
        scene = arm.begin(3, HELD_OUT_SEED)
        scene.target = arm.tip_of(scene.joints) + [0.3, 0.2]
        for camera in arm.CAMERAS:
            shown = arm.picture(scene, camera)
            scene.target = scene.target - 0.6
            self.assertGreater(np.abs(arm.picture(scene, camera).astype(int) - shown).max(), 100, camera)

    def test_episodes_are_functions_of_seed_and_number(self):
        one, same, other = arm.begin(5, 1), arm.begin(5, 1), arm.begin(5, HELD_OUT_SEED)
        np.testing.assert_array_equal(one.target, same.target)
        self.assertGreater(np.abs(one.target - other.target).max(), 0.01)


class Recorded(unittest.TestCase):
    def check_played_again(self, data_set, episodes):
        """The expert's actions bring the arm onto the targets of these numbers."""
        (file,) = (data_set / "data").rglob("*.parquet")
        table = pyarrow.parquet.read_table(file).to_pydict()
        by_episode = {}
        for number, action in zip(table["episode_index"], table["action"], strict=True):
            by_episode.setdefault(number, []).append(action)
        self.assertEqual(len(by_episode), episodes)
        for number, actions in by_episode.items():
            scene = arm.begin(number, 1)
            for action in actions:
                scene.move(action)
            self.assertLess(scene.distance(), 1e-3)

    def test_episodes_that_are_played_again_reach_their_targets(self):
        self.check_played_again(WORK / "set", SIZE.recorded)

    def test_those_of_the_example_do_so_too(self):
        self.check_played_again(example.PLACE / "reach", example.EPISODES)


class Policy(unittest.TestCase):
    """From the data set to the disc."""
    def reached_after(self, out, steps, *flags):
        run_trainer("train", "--model", "pi0-nano", "--data", WORK / "set", "--tokenizer", WORK / "tokenizer.model", *robot_arm.TRAIN_FLAGS,
                    "--steps", steps, "--out", WORK / out, *flags)
        with acting.Acting(TRAINER, WORK / out, WORK) as policy:
            scenes = simulation.ends(policy, SIZE.simulated, HELD_OUT_SEED)
        print(f"      {out}: reached {simulation.reached(scenes):.0%}, {simulation.distance(scenes):.2f} away", flush=True)
        return simulation.reached(scenes)


class Untrained(Policy):
    def test_it_reaches_no_target(self):
        self.assertLess(self.reached_after("untrained", 1, "--lr", 1e-9), REACHED_UNTRAINED_MAX)


class Trained(Policy):
    def test_it_reaches_targets_that_nobody_recorded(self):
        self.assertGreaterEqual(self.reached_after("trained", STEPS, "--lr", robot_arm.LEARNING_RATE), REACHED_MIN)


def main(words):
    global SIZE
    SIZE = Long if "--long" in words else Short
    names = [word for word in words if word != "--long"]
    loader, this = unittest.defaultTestLoader, sys.modules["__main__"]
    return unittests.tell(loader.loadTestsFromNames(names or SIZE.tests, this))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
