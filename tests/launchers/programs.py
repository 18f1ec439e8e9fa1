"""Where the programs of these tests are; run has asked for it before it became_alone()."""
import os

from support.places import BUILD

TJ = BUILD / "cli/tj"
TRAINER = BUILD / "trainer/trainer"


def slurm_usr():
    return os.environ["TJ_SLURM_USR"]
