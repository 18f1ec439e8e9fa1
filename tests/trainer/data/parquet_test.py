"""`trainer prepare` on Parquet, by the real program and the files of parquet/: what is read, what is refused, and what damaged files do.

usage: parquet_test.py TRAINER
"""

import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "parquet"))
import make  # noqa: E402  what the files hold; their writer is not needed

FILES = HERE / "parquet"
TRAINER = None
SECONDS_MAX = 60
LARGE_COPIES = 400
TOKENS_AT = 128  # of a .tok; docs/data.md
DAMAGED = re.compile(r"^trainer prepare: \S+: .", re.MULTILINE)


def texts(copies=1):
    return [text for text in make.rows() if text] * copies


def documents(folder, split="train"):
    """Of byte tokens, in the order of the token files."""
    tokens = b""
    for file in sorted(folder.glob(f"{split}-*.tok")):
        content = file.read_bytes()
        (count,) = struct.unpack_from("<q", content, 24)
        tokens += content[TOKENS_AT:TOKENS_AT + count]
    return [text.decode() for text in tokens.split(b"\0")[:-1]]


def varint(number):
    content = b""
    while number > 127:
        content, number = content + bytes([number & 127 | 128]), number >> 7
    return content + bytes([number])


def element(name, children):
    """A group in a schema, as Thrift's compact protocol writes it: repetition, name, number of children."""
    return b"\x35\x00\x18" + varint(len(name)) + name + b"\x15" + varint(2 * children) + b"\x00"


def with_footer(footer):
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


class ParquetTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tj-parquet-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.count = 0

    def start(self, *flags, output, program=None, **variables):
        command = [program or TRAINER, "prepare", "--output", output, *flags]
        environment = dict(os.environ, TRAININGJOB_TERMINATION_LOG=os.devnull, **variables)
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def prepare(self, *flags, code=0, **options):
        """(folder of tokens, what was printed)"""
        self.count += 1
        output = self.folder / f"tokens-{self.count}"
        process = self.start(*flags, output=output, **options)
        out, err = process.communicate(timeout=SECONDS_MAX)
        self.assertEqual(process.returncode, code, f"{flags}: {out}{err}")
        return output, out + err


class Reading(ParquetTest):
    def test_every_way_of_writing_gives_the_same_documents(self):
        for file in sorted(FILES.glob("*.parquet")):
            if file.stem in ("mixed", "zstd_large", "snappy_empty"):
                continue
            with self.subTest(file.stem):
                output, said = self.prepare("--input", file)
                self.assertEqual(documents(output), texts())
                left_out = make.COUNT - len(texts())
                self.assertIn(f"rows   {left_out} of {make.COUNT} are left out, having no text\n", said)

    def test_a_row_group_is_cut_into_parts_whatever_the_workers(self):
        file = FILES / "zstd_large.parquet"
        first = None
        for workers in (1, 3):
            output, said = self.prepare("--input", file, "--part-mib", 1, "--workers", workers)
            self.assertRegex(said, r"documents in 2 token files\n")
            self.assertEqual(documents(output), texts(LARGE_COPIES))
            content = {path.name: path.read_bytes() for path in output.iterdir()}
            first = first or content
            self.assertEqual(content, first)

    def test_magic_makes_it_parquet_and_another_column_is_named(self):
        file = self.folder / "no-ending"
        shutil.copy(FILES / "mixed.parquet", file)
        output, said = self.prepare("--input", file, "--field", "body")
        self.assertEqual(documents(output), ["first", "second"])
        self.assertNotIn("left out", said)

    def test_val_holds_out_rows(self):
        flags = ("--input", FILES / "zstd_large.parquet", "--part-mib", 1, "--val", "1%")
        output, _ = self.prepare(*flags)
        train, val = documents(output), documents(output, "val")
        self.assertEqual(len(train) + len(val), len(texts()) * LARGE_COPIES)
        self.assertTrue(0.5 < len(val) / (0.01 * len(texts()) * LARGE_COPIES) < 1.5, len(val))
        again, _ = self.prepare(*flags, "--workers", 4)
        self.assertEqual(documents(again, "val"), val)

    def test_killed_it_goes_on_to_the_same_bytes(self):
        text = self.folder / "text"
        text.mkdir()
        for number in range(12):
            shutil.copy(FILES / "zstd_large.parquet", text / f"{number}.parquet")
        flags = ("--input", text, "--part-mib", 1, "--workers", 2, "--val", "0.2")
        whole, _ = self.prepare(*flags)
        killed = self.folder / "killed"
        kept = 0
        for parts in (3, 9):
            process = self.start(*flags, output=killed)
            while len(list(killed.glob("train-*.tok"))) < parts and process.poll() is None:
                pass
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kept += not (killed / "manifest.json").exists()
        self.assertGreater(kept, 0, "it was always too fast to be killed")
        process = self.start(*flags, output=killed)
        out, err = process.communicate(timeout=SECONDS_MAX)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(out, r"kept from before: \d+\.\d MB|it was done already")
        for file in whole.iterdir():
            self.assertEqual((killed / file.name).read_bytes(), file.read_bytes(), file.name)


class Refusing(ParquetTest):
    def test_the_columns_that_exist_are_named(self):
        mixed = FILES / "mixed.parquet"
        columns = ("; its columns are id (INT64), tags (list), author (struct), when (Timestamp(isAdjustedToUT...), raw (BYTE_ARRAY), "
                   "body (text), evil?nameevil?nameevil?n... (DOUBLE): --field names one of text\n")
        for field, cause in (("text", 'has no column "text"'), ("tags", 'its column "tags" is no text (list)'),
                             ("author", 'its column "author" is no text (struct)'), ("id", 'its column "id" is no text (INT64)'),
                             ("raw", 'its column "raw" is no text (BYTE_ARRAY)'), ("author.name", 'has no column "author.name"')):
            _, said = self.prepare("--input", mixed, "--field", field, code=65)
            self.assertEqual(said, f"trainer prepare: {mixed}: {cause}{columns}")

    def test_nothing_to_read(self):
        empty = FILES / "snappy_empty.parquet"
        self.assertIn(f"{empty}: has no row, as all others", self.prepare("--input", empty, code=65)[1])
        named = self.folder / "text.parquet"
        named.write_text("PAR1 is how it begins")
        self.assertIn("Parquet magic bytes not found in footer", self.prepare("--input", named, code=65)[1])
        (self.folder / "a.txt").write_text("PAR1 is how it begins")
        self.assertEqual(documents(self.prepare("--input", self.folder / "a.txt")[0]), ["PAR1 is how it begins"])

    def test_formats_are_not_mixed(self):
        shutil.copy(FILES / "mixed.parquet", self.folder)
        (self.folder / "z.txt").write_text("text")
        self.assertIn("z.txt: looks like folder, and ", self.prepare("--input", self.folder, code=65)[1])

    def test_missing_libraries_are_named(self):
        programs = self.folder / "bin"
        programs.mkdir()
        shutil.copy(TRAINER, programs)
        flags = ("--input", FILES / "mixed.parquet", "--field", "body")
        _, said = self.prepare(*flags, program=programs / "trainer", code=78)
        self.assertRegex(said, r"/bin/libtrainer_parquet.so: is missing; it must lie beside trainer, with Arrow's libraries, to read Parquet\n")
        plugin = (TRAINER.parent / "libtrainer_parquet.so").read_bytes()
        (programs / "libtrainer_parquet.so").write_bytes(re.sub(rb"libparquet\.so\.\d{4}", b"libparquet.so.9999", plugin))
        _, said = self.prepare(*flags, program=programs / "trainer", code=78)
        self.assertIn("can't be loaded: libparquet.so.9999, which it needs, is missing; Arrow's libraries", said)


class Damage(ParquetTest):
    """A file is cut or changed; each time it is read or refused, in a process of its own, in memory that is limited."""

    MEMORY_KB_MAX = 3 << 20  # of addresses: two workers' buffers and the libraries

    def check(self, content, where):
        """Whether it was read all the same."""
        file = self.folder / "damaged.parquet"
        file.write_bytes(content)
        output = self.folder / "damaged"
        shutil.rmtree(output, ignore_errors=True)
        command = f'ulimit -v {self.MEMORY_KB_MAX} && exec "$@"'
        process = subprocess.run(["sh", "-c", command, "-", TRAINER, "prepare", "--input", file, "--output", output, "--workers", "1"],
                                 capture_output=True, text=True, timeout=SECONDS_MAX, errors="replace",
                                 env=dict(os.environ, TRAININGJOB_TERMINATION_LOG=os.devnull))
        self.assertIn(process.returncode, (0, 65), f"{where}: {process.stdout}{process.stderr}")
        if process.returncode == 65:
            self.assertRegex(process.stderr, DAMAGED, where)
        return process.returncode == 0

    def test_files_that_are_cut_short(self):
        for name, cuts in (("snappy_dictionary", 12), ("none_groups", 12)):
            content = (FILES / f"{name}.parquet").read_bytes()
            for kept in sorted({len(content) * i // cuts for i in range(1, cuts)} | {4, 8, 11, len(content) - 1, len(content) - 8}):
                self.assertFalse(self.check(content[:kept], f"{name} cut to {kept}"))
                if kept < len(content) - 8:
                    self.assertFalse(self.check(content[:kept] + content[-8:], f"{name} without bytes {kept} to the tail"))

    def test_bytes_that_are_flipped(self):
        dice = random.Random(7)
        for name in ("snappy_dictionary", "zstd_pages_v2", "gzip_delta_length", "brotli_delta", "none_groups", "lz4_large_string"):
            content = (FILES / f"{name}.parquet").read_bytes()
            (footer,) = struct.unpack_from("<I", content, len(content) - 8)
            begin = len(content) - 8 - footer
            # The footer is where sizes and offsets stand; the first pages where their headers do.
            places = [dice.randrange(begin, len(content)) for _ in range(12)] + [dice.randrange(4, begin) for _ in range(12)]
            for place in places:
                changed = bytearray(content)
                changed[place] ^= 1 << dice.randrange(8)
                self.check(bytes(changed), f"{name} with byte {place} as {changed[place]}")

    def test_sizes_that_are_claimed(self):
        content = (FILES / "none_groups.parquet").read_bytes()
        for claimed in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF):
            self.assertFalse(self.check(content[:-8] + struct.pack("<I", claimed) + b"PAR1", f"a footer of {claimed}"))
        head = b"\x15\x04"  # version
        for count in (100_000, 150_000, 190_000, 0x7FFFFFFF):
            row_groups = b"\x16\x00\x19\xfc" + varint(count) + b"\x00" * 1000
            schema = b"\x19\x1c" + element(b"root", 0)
            self.assertFalse(self.check(with_footer(head + schema + row_groups + b"\x00"), f"{count} row groups"))

    def test_a_schema_that_is_nested_without_end(self):
        for depth in (100, 10_000, 199_000):
            schema = b"\x19\xfc" + varint(depth) + element(b"a", 1) * (depth - 1) + b"\x15\x0c\x25\x02\x18\x01z\x00"
            self.assertFalse(self.check(with_footer(b"\x15\x04" + schema + b"\x16\x00\x19\x0c\x00"), f"{depth} deep"))


if __name__ == "__main__":
    TRAINER = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
