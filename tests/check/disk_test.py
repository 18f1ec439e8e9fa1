"""A whole run begins only where the disk has room for it."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "test"))
import disk  # noqa: E402


class Disk(unittest.TestCase):
    def test_room_enough(self):
        self.assertIsNone(disk.missing("/here", 9.5, caches_are_empty=False))
        self.assertIsNone(disk.missing("/here", 21, caches_are_empty=True))

    def test_what_is_there_and_what_is_needed_is_told(self):
        self.assertEqual(disk.missing("/here", 6.5, caches_are_empty=False),
                         "the disk of /here has 6.5 GB free and a whole run needs 9 GB; free some, or run single stages: tools/test/run STAGE")
        self.assertIn("needs 21 GB, 12 GB of them for the caches, which are empty", disk.missing("/here", 9.5, caches_are_empty=True))

    def test_the_disk_is_asked(self):
        self.assertGreater(disk.free_gb("/"), 0)


if __name__ == "__main__":
    unittest.main()
