"""Training from token files: every format gives the same losses, and what is damaged ends a run with its cause."""

import array
import struct

from engine import TEXT, EngineTest

SMALL = ("--layers", 2, "--width", 32, "--heads", 2, "--seq-len", 32, "--batch-size", 8, "--steps", 4)


class Tokens(EngineTest):
    def setUp(self):
        super().setUp()
        self.ids = list(TEXT.encode()) + [0]

    def write(self, name, *parts):
        path = self.folder / name
        path.write_bytes(b"".join(parts))
        return path

    def uint16(self, ids=None):
        return array.array("H", ids or self.ids).tobytes()

    def llmc(self, ids=None, magic=20240520):
        ids = ids or self.ids
        return struct.pack("<3i", magic, 1, len(ids)).ljust(1024, b"\0") + self.uint16(ids)

    def losses_with(self, data, *flags):
        self.data, out = data, self.folder / f"out-{data.name}"
        self.train(*SMALL, *flags, "--vocabulary", 50257, "--out", out)
        return self.losses(out)

    def assert_bad_data(self, message, *flags):
        _, err = self.train(*SMALL, *flags, code=65)
        self.assertEqual(self.cause(err), "trainer: " + message)
        self.assertEqual(self.words()["reason"], "BadData")

    def test_every_format_gives_the_same_losses_however_many_threads_read(self):
        expected = self.losses_with(self.write("raw.bin", self.uint16()))
        self.assertEqual(len(expected), 4)
        self.assertEqual(self.losses_with(self.write("llmc.bin", self.llmc()), "--data-threads", 3), expected)
        count = len(self.ids)
        self.write("m.idx", b"MMIDIDX\0\0", struct.pack("<QBQQiqq", 1, 8, 1, 1, count, 0, 0))
        self.assertEqual(self.losses_with(self.write("m.bin", self.uint16())), expected)

    def test_the_vocabulary_must_be_known_and_large_enough(self):
        self.data = self.write("raw.bin", self.uint16())
        _, err = self.train(*SMALL, code=78)
        self.assertEqual(
            self.cause(err),
            "trainer: --vocabulary: is missing, and the files of --data don't say it; GPT-2's is 50257",
        )
        self.data = self.write("llmc.bin", self.llmc())
        _, err = self.train(*SMALL, "--vocabulary", 1000, code=78)
        self.assertEqual(
            self.cause(err), "trainer: --vocabulary: is 1000; it must be at least that of the data, 50257"
        )

    def test_files_that_can_not_be_are_named_with_their_offset(self):
        size = len(self.llmc())
        count = len(self.ids)
        self.data = self.write("cut.bin", self.llmc()[:-1])
        self.assert_bad_data(
            f"{self.data}: at byte 8: the token count is {count}, which makes a file of {size} bytes; "
            f"this one has {size - 1}: cut short"
        )
        self.data = self.write("model.bin", self.llmc(magic=20240326))
        self.assert_bad_data(
            f"{self.data}: at byte 0: the magic is 20240326, llm.c's model; tokens have 20240520 (GPT-2) or "
            "20240801 (Llama 3)"
        )

    def test_damage_that_only_training_finds_ends_the_run(self):
        ids = list(self.ids)
        ids[len(ids) // 2] = 300
        self.data = self.write("raw.bin", self.uint16(ids))
        message = (
            f"{self.data}: at byte {2 * (len(ids) // 2)}: the token is 300; it must be less than the vocabulary, 256"
        )
        one_epoch = ("--vocabulary", 256, "--steps", len(ids) // 32 // 8 + 1, "--log-every", 1000)
        _, err = self.train(*SMALL, *one_epoch, code=65)
        self.assertEqual(self.cause(err), "trainer: " + message)
        self.assertEqual(self.words()["reason"], "BadData")

    def test_damage_that_one_of_two_ranks_finds_ends_both(self):
        self.data = self.write("raw.bin", self.uint16([300] * 32 + self.ids))
        flags = (*SMALL, "--vocabulary", 256, "--steps", 200, "--log-every", 1000)
        ranks = [self.start(*flags, rank=rank, world_size=2) for rank in range(2)]
        causes = [self.cause(rank.communicate(timeout=120)[1]) for rank in ranks]
        codes = [rank.returncode for rank in ranks]
        self.assertIn(sorted(codes), ([65, 65], [65, 76]))
        for code, cause in zip(codes, causes):
            self.assertIn("at byte", cause)  # the first cause, whoever found it
            if code == 76:
                self.assertRegex(cause, r"rank \d on node \S+ failed first, in phase (start|step)")
