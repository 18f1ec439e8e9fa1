"""tools/hardened finds each protection that a program lacks; the presets of what is shipped ask for all of them."""
import json
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Copies what it is given into an array, with a length that only the run knows.
SOURCE = '#include <cstring>\nint main(int n, char** v) { char a[8]; std::strcpy(a, v[n - 1]); return a[0]; }\n'
WITHOUT = {
    "is no position-independent program": ["-fno-pie", "-no-pie"],
    "its relocations stay writable": ["-Wl,-z,norelro"],
    "its functions are bound late": ["-Wl,-z,lazy"],
    "has no stack protector": ["-fno-stack-protector"],
    "calls no fortified function": ["-U_FORTIFY_SOURCE"],
}


def shipped_flags():
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    variables = next(preset for preset in presets if preset["name"] == "shipped")["cacheVariables"]
    return ["-O2", *variables["CMAKE_CXX_FLAGS"].split(), *variables["CMAKE_EXE_LINKER_FLAGS"].split()]


class Hardened(unittest.TestCase):
    def said_of(self, *flags):
        with tempfile.TemporaryDirectory() as folder:
            source, program = pathlib.Path(folder) / "p.cc", pathlib.Path(folder) / "p"
            source.write_text(SOURCE)
            subprocess.run(["g++", *shipped_flags(), *flags, "-o", program, source], check=True)
            done = subprocess.run([ROOT / "tools/hardened", program], capture_output=True, text=True)
            self.assertEqual(done.returncode == 0, done.stderr == "")
            return done.stderr

    def test_what_the_presets_build_lacks_nothing(self):
        self.assertEqual(self.said_of(), "")

    def test_each_protection_is_missed(self):
        for complaint, flags in WITHOUT.items():
            with self.subTest(complaint):
                said = self.said_of(*flags)
                self.assertIn(complaint, said)
                self.assertEqual(len(said.splitlines()), 1, said)

    def test_the_images_hold_only_what_was_checked(self):
        dockerfile = (ROOT / "Dockerfile").read_text()
        self.assertEqual(dockerfile.count("tools/programs"), dockerfile.count("--preset release --target"))
        self.assertIn('"$here/tools/programs"', (ROOT / "tools/images").read_text())
        self.assertIn('tools/hardened" "${files[@]}"', (ROOT / "tools/programs").read_text())


if __name__ == "__main__":
    unittest.main()
