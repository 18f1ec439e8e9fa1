"""Prints the launch variables of this worker, then the variables named on the command line.

Ends with exit code 1 where one is missing.
"""
import os
import sys

LAUNCH = ["WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT", "NNODES", "NODE_RANK", "NPROC_PER_NODE", "PET_NNODES",
          "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT", "TRAININGJOB_NAME",
          "TRAININGJOB_NAMESPACE", "TRAININGJOB_UID", "TRAININGJOB_ATTEMPT", "POD_IP", "NODE_NAME"]

wanted = LAUNCH + sys.argv[1:]
for name in wanted:
    if name in os.environ:
        print(f"{name}={os.environ[name]}", flush=True)

missing = [name for name in wanted if name not in os.environ]
if missing:
    sys.exit(f"not set: {', '.join(missing)}")
