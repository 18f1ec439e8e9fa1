"""A whole run needs room on the disk: where it ends in the middle, stories of the cluster and compilers fail with other causes."""
import shutil

RUN_GB = 9  # what the checkout's builds, the images and a cluster's nodes come to
CACHES_GB = 12  # what an empty folder of caches grows by
GB = 1e9


def missing(folder, free_gb, caches_are_empty):
    """Why a whole run should not begin; None where there is room."""
    needed_gb = RUN_GB + (CACHES_GB if caches_are_empty else 0)
    if free_gb >= needed_gb:
        return None
    caches = f", {CACHES_GB} GB of them for the caches, which are empty" if caches_are_empty else ""
    return (f"the disk of {folder} has {free_gb:.1f} GB free and a whole run needs {needed_gb} GB{caches}; free some, or run single stages: "
            "tools/test/run STAGE")


def free_gb(folder):
    return shutil.disk_usage(folder).free / GB
