"""Troubles of a training on somebody's cluster, each provoked: the last line names its cause and what to do about it.

docs/operating.md has the whole list ("When a training does not begin"), with the tests that show the others.
"""

import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import videos

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support.ports import free_port  # noqa: E402
from support.processes import ProcessTest, environment_of_a_program  # noqa: E402
from support.waiting import until  # noqa: E402

TRAINER = pathlib.Path(os.environ.get("TJ_TRAINER", ""))
PROGRAMS = TRAINER.parent
FAKE_PLUGIN = PROGRAMS.parent / "tests/trainer/comm/libfake_good.so"
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")  # root, too, needs the right to read
TOO_SMALL_SHM = ("Error while creating shared memory segment /dev/shm/nccl-KWfVyt (size 9637888), error: No space left on "
                 "device (28)")
CLOSED_PORT = "socketPollConnect: connect to 10.0.0.1<43215> returned Connection refused, exceeded error retry count after 35 attempts"


def as_root_of(*namespaces):
    """A command that runs another one in namespaces of its own, where it may make networks and mounts."""
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ("unshare", *user, *namespaces)


class Troubles(ProcessTest):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tj-troubles-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.programs = PROGRAMS
        self.data = self.folder / "data"
        self.data.mkdir()
        for frame in range(16):
            (self.data / f"{frame:03}.ppm").write_bytes(b"P6 32 32 255\n" + bytes((frame * 9, 70, 200)) * 1024)

    def command(self, *flags, program="trainer-engine"):
        return [str(self.programs / program), "train", "--model", "taehv-nano", "--data", str(self.data), "--out",
                str(self.folder / "out"), "--steps", "2", "--batch-size", "2", "--threads", "1", "--log-dir", "off",
                "--tensorboard", "off", *map(str, flags)]

    def start(self, command, within=(), **variables):
        words = {"TRAININGJOB_TERMINATION_LOG": str(self.folder / "words")}
        return self.spawn([*within, *map(str, command)], environment_of_a_program("TMPDIR", **(words | variables)))

    def last_line(self, process, code):
        return self.finish(process, code)[1].strip().splitlines()[-1]

    def assert_fails(self, code, last_line, command, within=(), **variables):
        """`last_line`: a regular expression for a piece of it."""
        self.assertRegex(self.last_line(self.start(command, within, **variables), code), last_line)

    def pieces(self, *names):
        """A folder of programs with these of ours; others may be put beside them."""
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        for name in names:
            try:
                os.link(PROGRAMS / name, self.programs / name)
            except OSError:  # another file system
                shutil.copy(PROGRAMS / name, self.programs / name)
        return self.programs

    def forge(self, name, pattern, other):
        """A copy of a program of ours that needs `other` instead of a library that is there."""
        raw = (PROGRAMS / name).read_bytes()
        needed = re.search(pattern, raw)[0]
        self.assertEqual(len(needed), len(other))
        copy = self.programs / name
        copy.write_bytes(raw.replace(needed, other))
        copy.chmod(0o755)


class Network(Troubles):
    def rank_1(self, address, within=(), seconds=1):
        return self.start(self.command("--rendezvous-timeout-seconds", seconds), within, WORLD_SIZE="2", RANK="1",
                          MASTER_ADDR=address, MASTER_PORT=str(free_port()))

    def test_a_filtered_port_and_a_place_without_a_route(self):
        """What goes to 10.0.0.1 reaches a cable whose other end is nobody's."""
        network = ("ip link set lo up && ip link add eth0 type veth peer name far && ip address add 10.0.0.2/24 dev eth0 && "
                   "ip link set far up && ip link set eth0 up && "
                   "ip neighbour add 10.0.0.1 lladdr 02:00:00:00:00:01 dev eth0 && exec \"$@\"")
        within = (*as_root_of("--net"), "sh", "-c", network, "sh")
        filtered, unrouted = self.rank_1("10.0.0.1", within, seconds=2), self.rank_1("192.0.2.1", within)
        self.assertRegex(self.last_line(filtered, 69),
                         r"^trainer: rank 1 waited \d s for rank 0 at 10.0.0.1:\d+: no answer; nothing comes back: a firewall or a "
                         r"NetworkPolicy drops what goes to that port, which must be open between the nodes, or ")
        self.assertRegex(self.last_line(unrouted, 69),
                         r"for rank 0 at 192.0.2.1:\d+: Network is unreachable; this node has no route there: MASTER_ADDR must lead ")


class Devices(Troubles):
    # Two GPUs, as far as one can see from /dev.
    FAKE_DEV = ('for node in null zero random urandom; do : >"$0/$node" && mount --bind "/dev/$node" "$0/$node" || exit; done; '
                'mkdir "$0/shm" && : >"$0/nvidia0" && : >"$0/nvidia1" && mount --rbind "$0" /dev && exec "$@"')

    def test_an_invalid_device_ordinal(self):
        cause = (r'CUDA_VISIBLE_DEVICES: is "0,5", and there is no GPU 5 \(CUDA: invalid device ordinal\); it must be of indices from 0 '
                 r"to 1, as 2 GPUs are here, or not be set$")
        for number, command in enumerate((self.command(), [TRAINER, "launch", "--", "true"])):
            dev = self.folder / f"dev-{number}"
            dev.mkdir()
            within = (*as_root_of("--mount"), "sh", "-c", self.FAKE_DEV, str(dev))
            self.assert_fails(78, cause, command, within, CUDA_VISIBLE_DEVICES="0,5")

    def fake_gpus(self):
        """Programs beside a plug-in that believes in GPUs; they never compute on one."""
        programs = self.pieces("trainer-engine")
        shutil.copy(FAKE_PLUGIN, programs / "libtrainer_nccl.so")
        (programs / "libtorch_cuda.so").symlink_to("/lib/x86_64-linux-gnu/libc.so.6")
        return {"LD_LIBRARY_PATH": str(programs), "CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "NODE_NAME": "node-a"}

    def test_a_gpu_that_cuda_does_not_have(self):
        variables = self.fake_gpus()
        says = "CUDA has 1 device, numbered from 0, and this process needs number 1: invalid device ordinal"
        pair = [self.start(self.command(), **variables, RANK=str(rank), LOCAL_RANK=str(rank), FAKE_GPU_SAYS=says) for rank in (0, 1)]
        for process in pair:
            self.assertRegex(self.last_line(process, 78),
                             rf"rank 0 on node node-a trains on cuda .*, but not rank 1 on node node-a \(2 GPUs are visible, but it "
                             rf"can't be used: {says}; CUDA_VISIBLE_DEVICES must name GPUs that this node has, one for each ")

    def nccl_fails(self, warning):
        """What two ranks say in their last lines, and their exit codes."""
        variables = self.fake_gpus() | {"LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        says = f"unhandled system error, NCCL version 2.28.9: {warning}"
        pair = [self.start(self.command(), **variables, RANK=str(rank), FAKE_CARD=f"{rank}-", FAKE_NCCL_SAYS=says) for rank in (0, 1)]
        ends = [(*process.communicate(timeout=self.SECONDS_MAX), process.returncode) for process in pair]
        for _, err, _ in ends:
            self.assertRegex(err.strip().splitlines()[-1], rf"rank [01] on node node-a can't start NCCL: {re.escape(says)}; ")
        return [err.strip().splitlines()[-1] for _, err, _ in ends], {code for *_, code in ends}

    def test_nccl_has_too_little_shared_memory(self):
        lines, codes = self.nccl_fails(TOO_SMALL_SHM)
        for line in lines:
            self.assertIn("/dev/shm is too small or full: a volume emptyDir with medium: Memory, mounted at /dev/shm, gives more", line)
        # Who hears of the other's failure before its own ends with 76.
        self.assertIn(78, codes)
        self.assertLessEqual(codes, {76, 78})

    def test_nccl_finds_a_port_closed(self):
        lines, codes = self.nccl_fails(CLOSED_PORT)
        for line in lines:
            self.assertIn("every port between the nodes must be open", line)
        self.assertIn(69, codes)
        self.assertLessEqual(codes, {69, 76})


class Libraries(Troubles):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data.mp4"
        self.data.write_bytes(b"nobody comes to look")

    def test_the_video_plug_in_is_missing(self):
        self.pieces("trainer-engine")
        self.assert_fails(78, r"^trainer: .*/bin/libtrainer_video.so: is missing; it must lie beside trainer-engine, with FFmpeg's "
                              r"libraries \(Debian: libavformat59, ", self.command())

    def test_a_library_of_ffmpeg_is_missing(self):
        self.pieces("trainer-engine")
        self.forge("libtrainer_video.so", rb"libavcodec\.so\.\d\d", b"libavcodec.so.99")
        self.assert_fails(78, r"libtrainer_video.so: can't be loaded: libavcodec.so.99, which it needs, is missing \(Debian: libavcodec99\); "
                              r"videos need FFmpeg's libraries, PPM pictures don't$", self.command())

    def test_libtorch_is_missing(self):
        """The loader would end the engine before its first line."""
        self.pieces("trainer")
        self.forge("trainer-engine", rb"libtorch_cpu\.so", b"libtorch_gon.so")
        cause = (r"/bin/trainer-engine: libtorch_gon.so is missing; the folder torch/lib of libtorch must be in LD_LIBRARY_PATH, or in "
                 r"/etc/ld.so.conf.d as in our image$")
        command = self.command(program="trainer")
        self.assert_fails(127, "^trainer train: .*" + cause, command)
        self.assert_fails(127, "^trainer launch: .*" + cause, [self.programs / "trainer", "launch", "--nproc", 1, "--", *command])
        out, _ = self.finish(self.start([self.programs / "trainer", "check"]), 78)
        self.assertRegex(out, r"(?m)^fatal  engine .*libtorch_gon.so is missing")


class Data(Troubles):
    def test_data_that_may_not_be_read(self):
        within = WITHOUT_RIGHTS if os.geteuid() == 0 else ()
        right = rf"can't be read: Permission denied; user {os.geteuid()} needs the right to read it$"
        self.data.chmod(0)
        self.assert_fails(65, f"^trainer: .*/data: {right}", self.command(), within)
        inner = self.data = self.data / "inner"
        self.assert_fails(65, f"^trainer: .*/data/inner: {right}", self.command(), within)
        inner.parent.chmod(0o755)
        self.data = self.folder / "own.mp4"
        self.data.write_bytes(b"a video, for all that one can see")
        self.data.chmod(0)
        self.assert_fails(65, r"1 of 1 videos can't be used, --bad-data-max allows 1% \(mend or remove them, or allow more\): .*/own.mp4: "
                              r"can't be opened: Permission denied$", self.command(), within)

    def test_a_file_that_ended_early(self):
        self.data = self.folder / "videos"
        for ending in ("mp4", "avi"):
            with self.subTest(ending):
                path = videos.make(self.data / f"cut.{ending}", frames=30)
                os.truncate(path, path.stat().st_size * 6 // 10)
                self.assert_fails(65, rf"1 of 1 videos can't be used.*cut.{ending}: (is no video, or )?ends early", self.command())
                path.unlink()

    def test_files_that_end_early_while_they_are_read(self):
        self.data = self.folder / "videos"
        cut = [videos.make(self.data / f"{number}.mkv", frames=40, skip=number) for number in range(3)][:2]
        said = self.folder / "said"
        process = self.start(self.command("--steps", 1_000_000, "--bad-data-max", "40%", "--frame-cache", 0), ("sh", "-c", 'exec "$@" >"$0"', str(said)))
        until(self.SECONDS_MAX, "a step", lambda: said.exists() and "step 2/" in said.read_text())
        os.truncate(cut[0], cut[0].stat().st_size // 4)
        lines = iter(process.stderr.readline, "")
        left_out = next(line for line in lines if "left out" in line)
        self.assertRegex(left_out, r"left out, other clips take its place \(1 of 3 videos\): .*/0\.mkv: (ends early|can't be read)")
        os.truncate(cut[1], cut[1].stat().st_size // 4)
        self.assertRegex(self.last_line(process, 65),
                         r"/1\.mkv: .*; 2 of 3 videos can't be used, --bad-data-max allows 40% \(mend or remove them, or allow more\)$")


class Variables(Troubles):
    def test_time_limits_that_nothing_reads_are_told_once_on_a_node(self):
        out, err = self.finish(self.start([TRAINER, "launch", "--nproc", 2, "--", *self.command()],
                                          NCCL_TIMEOUT="10800", TORCH_DISTRIBUTED_TIMEOUT="10800"))
        for name in ("NCCL_TIMEOUT", "TORCH_DISTRIBUTED_TIMEOUT"):
            told = [line for line in (out + err).splitlines() if f"{name}=" in line]
            self.assertEqual(told, [f"[rank 0] trainer: {name}=10800: nothing reads it, so it has no effect; how long a rank may stand "
                                    "still is said by --limit, how long ranks wait for each other by --rendezvous-timeout-seconds "
                                    "(trainer train)"])


if __name__ == "__main__":
    unittest.main()
