#!/usr/bin/python3
"""Makes stand-ins for the NVIDIA libraries that torch's wheel links to and CPU work never calls.

  cuda_stubs.py TORCH_LIB OUT    reads the wheel's torch/lib, writes the libraries to OUT

The wheel is a CUDA build, and the real libraries are three gigabytes. Each stand-in defines, under the version
it is asked for, every function of that library which torch's own libraries leave undefined; one that is called
all the same says its name and aborts, so that nothing runs on wrong answers.
"""
import pathlib
import subprocess
import sys

USERS = ("libtorch_cuda.so", "libtorch_python.so", "libtorch_nvshmem.so", "libc10_cuda.so")
SYSTEM = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2",
          "librt.so.1", "ld-linux-x86-64.so.2")
REAL = ("libcudart.so.13", "libcupti.so.13")  # small enough to have
PREFIXES = {"cuFile": "libcufile.so.0", "cusparseLt": "libcusparseLt.so.0", "nccl": "libnccl.so.2",
            "nvshmem": "libnvshmem_host.so.3", "curand": "libcurand.so.10"}
HEAD = """#include <stdio.h>
#include <stdlib.h>
static void called(const char* name) {
  fprintf(stderr, "%s: CUDA function called; this Python has torch for the CPU only\\n", name);
  abort();
}
"""


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(library, *flags):
    """(name, version) of each dynamic symbol; the version is "" where there is none."""
    for line in output_of("nm", "-D", "--with-symbol-versions", *flags, str(library)).splitlines():
        name, _, version = line.split()[-1].partition("@")
        yield name, version.lstrip("@")


def needed(library):
    return [line.split()[1] for line in output_of("objdump", "-p", str(library)).splitlines() if "NEEDED" in line]


def soname_of(name, version):
    if version.startswith("lib"):
        return version  # libcublas.so.13 names its versions after itself
    for prefix, soname in PREFIXES.items():
        if name.startswith(prefix):
            return soname
    return None


def write_stub(path, names):
    """`names` maps each function to its version."""
    functions = "".join(f'void {name}(void) {{ called("{name}"); }}\n' for name in sorted(names))
    versions = {version for version in names.values() if version}
    command = ["gcc", "-w", "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path), f"-Wl,-soname,{path.name}"]
    if versions:
        script = path.with_suffix(".map")
        script.write_text("".join(f"{version} {{ global: *; }};\n" for version in versions))
        command.append(f"-Wl,--version-script,{script}")
    subprocess.run(command, input=HEAD + functions, text=True, check=True)


def main():
    torch_lib, out = (pathlib.Path(argument) for argument in sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    system = pathlib.Path("/lib/x86_64-linux-gnu")
    present = [*torch_lib.glob("*.so*"), *(out / name for name in REAL), *(system / name for name in SYSTEM)]
    defined = {name for library in present for name, _ in symbols(library, "--defined-only")}
    stubs = {soname: {} for user in USERS for soname in needed(torch_lib / user)
             if not any(path.name == soname for path in present)}
    for user in USERS:
        for name, version in symbols(torch_lib / user, "--undefined-only"):
            soname = soname_of(name, version)
            if soname in stubs and name not in defined:
                stubs[soname][name] = version
    for soname, names in stubs.items():
        write_stub(out / soname, names)


if __name__ == "__main__":
    main()
