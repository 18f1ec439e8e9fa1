"""Closed loop: a policy is shown pictures and joints, says a chunk of joints to go to, is followed for some steps, and is asked again."""
import arm
import numpy as np

FOLLOWED_STEPS = 4  # of a chunk
HELD_OUT_SEED = 2  # of starts and targets that nobody recorded


def ends(policy, episodes, seed):
    """The scenes after STEPS_MAX steps. `policy` makes, of scenes, chunks [steps, 2] of joints."""
    scenes = [arm.begin(number, seed) for number in range(episodes)]
    for _ in range(0, arm.STEPS_MAX, FOLLOWED_STEPS):
        for scene, chunk in zip(scenes, policy(scenes), strict=True):
            for wanted in chunk[:FOLLOWED_STEPS]:
                scene.move(wanted)
    return scenes


def reached(scenes):
    """Share of them whose tip is on its disc."""
    return sum(scene.is_reached() for scene in scenes) / len(scenes)


def distance(scenes):
    """Of the tips from the middles of their discs, on average."""
    return sum(scene.distance() for scene in scenes) / len(scenes)


def expert(scenes):
    def chunk(scene):
        joints, wanted = scene.joints, []
        for _ in range(FOLLOWED_STEPS):
            joints = arm.towards(joints, scene.target)
            wanted.append(joints)
        return np.array(wanted)
    return [chunk(scene) for scene in scenes]


def at_rest(scenes):
    return [np.tile(scene.joints, (FOLLOWED_STEPS, 1)) for scene in scenes]
