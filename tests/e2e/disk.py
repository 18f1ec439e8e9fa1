"""A small disk that all nodes see at the same place. It must be there before they are, as the mounts of a node are its own."""
import pathlib
import tempfile

import world

SIZE_MB = 64


class Disk:
    folder = None

    def mount(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-e2e-"))
        world.run("mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m,mode=777", "tmpfs", self.folder)

    def unmount(self):
        if self.folder:
            world.run("umount", "--lazy", self.folder)
            self.folder.rmdir()
            self.folder = None


DISK = Disk()
