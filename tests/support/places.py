"""Where things lie: the checkout, what was built, and the programs of a cluster."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TJ_BUILD") or ROOT / "build" / "dev").resolve()
CACHE = pathlib.Path(os.environ.get("TRAININGJOB_CACHE") or pathlib.Path.home() / ".cache/trainingjob")
BIN = CACHE / "bin"
CRD = ROOT / "manifests/crd/trainingjobs.yaml"
OPERATOR = BUILD / "operator/loop/trainingjob-operator"
