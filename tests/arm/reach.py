"""How often a trained policy brings the arm onto the disc, as JSON: for tests by another Python.

usage: reach.py TRAINER OUT EPISODES
"""
import json
import pathlib
import sys
import tempfile

import acting
import simulation


def main():
    trainer, out, episodes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory(prefix="tj-reach-") as folder, acting.Acting(trainer, out, pathlib.Path(folder)) as policy:
        scenes = simulation.ends(policy, episodes, simulation.HELD_OUT_SEED)
    print(json.dumps({"reached": simulation.reached(scenes), "distance": simulation.distance(scenes)}))


if __name__ == "__main__":
    main()
