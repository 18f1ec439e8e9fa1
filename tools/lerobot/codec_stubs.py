#!/usr/bin/python3
"""Makes stand-ins for the NVIDIA libraries that torchcodec's wheel links to and CPU work never calls.

  codec_stubs.py TORCHCODEC OUT    reads the wheel's libraries, writes two to OUT
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python-torch"))
import cuda_stubs  # noqa: E402

STUBS = {"libnppicc.so.13": "npp", "libnvrtc.so.13": "nvrtc"}


def main():
    torchcodec, out = map(pathlib.Path, sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    wanted = {name: version for library in torchcodec.glob("libtorchcodec_core*.so")
              for name, version in cuda_stubs.symbols(library, "--undefined-only")}
    for soname, prefix in STUBS.items():
        cuda_stubs.write_stub(out / soname, {name: version for name, version in wanted.items() if name.startswith(prefix)})


main()
