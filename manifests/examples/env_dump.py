"""Prints the launch variables of this worker, and those named on the command line, in the order in which they are set.

Ends with exit code 1 where one is missing.
"""
import os
import sys

LAUNCH = ["WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT", "NNODES", "NODE_RANK", "NPROC_PER_NODE", "PET_NNODES",
          "PET_NODE_RANK", "PET_NPROC_PER_NODE", "PET_MASTER_ADDR", "PET_MASTER_PORT", "TRAININGJOB_NAME",
          "TRAININGJOB_NAMESPACE", "TRAININGJOB_UID", "TRAININGJOB_ATTEMPT", "POD_IP", "NODE_NAME"]

wanted = LAUNCH + sys.argv[1:]
for name, value in os.environ.items():
    if name in wanted:
        print(f"{name}={value}", flush=True)

missing = [name for name in wanted if name not in os.environ]
if missing:
    sys.exit(f"not set: {', '.join(missing)}")
