"""Where a run computes and what carries its collectives, on a machine whose GPUs are only claimed."""

import pathlib
import re
import shutil
import subprocess
import unittest.mock

from engine import ENGINE, EngineTest

SMALL = ("--layers", 1, "--width", 16, "--heads", 2, "--seq-len", 16, "--batch-size", 4, "--steps", 1)
PLUGIN = pathlib.Path(ENGINE).with_name("libtrainer_nccl.so")
FAKE_PLUGIN = pathlib.Path(ENGINE).parents[1] / "tests/trainer/comm/libfake_good.so"
ROOT = pathlib.Path(__file__).resolve().parents[3]


def torch_lib():
    """The folder of the wheel's libtorch_cuda.so, which stand-ins for CUDA's libraries let load."""
    python = subprocess.run([ROOT / "tools/deps", "python-torch"], capture_output=True, text=True, check=True).stdout
    found = next(pathlib.Path(python.strip()).parents[1].glob("lib/python3*/site-packages/torch/lib/libtorch_cuda.so"))
    return str(found.parent)


class Devices(EngineTest):
    def collectives(self, out):
        return re.search(r"(?m)^collectives: (.*)$", out).group(1)

    def rows(self, out):
        return {line.split("  ")[0].strip(): line for line in out.splitlines() if "  " in line}

    def test_without_a_gpu_the_cpu_is_taken_and_it_is_said(self):
        out, _ = self.train(*SMALL)
        self.assertEqual(self.collectives(out), "none, a single rank: no GPU is visible")
        self.assertRegex(self.rows(out)["computes on"], r"computes on +cpu +computed")

    def test_two_ranks_name_the_interface_and_the_reason(self):
        (out, _), (other, _) = self.train_ranks(2, *SMALL)
        self.assertEqual(self.collectives(out), "Gloo over lo (127.0.0.1): no GPU is visible")
        self.assertNotIn("collectives:", other)

    def test_a_missing_plugin_is_named(self):
        copy = self.folder / "bin/trainer-engine"
        copy.parent.mkdir()
        shutil.copy(ENGINE, copy)
        command = [copy, "train", "--data", self.data, "--out", self.out, *map(str, SMALL)]
        ended = subprocess.run(command, env=self.environment(0, 1, CUDA_VISIBLE_DEVICES="0"), capture_output=True,
                               text=True, check=True, timeout=240)
        self.assertEqual(self.collectives(ended.stdout),
                         f"none, a single rank: a GPU is visible, but libtrainer_nccl.so is missing: "
                         f"{copy.parent}/libtrainer_nccl.so")

    def test_a_missing_libtorch_cuda_is_named(self):
        self.assertTrue(PLUGIN.exists(), PLUGIN)
        out, _ = self.train(*SMALL, environment={"CUDA_VISIBLE_DEVICES": "0,1"})
        self.assertRegex(self.collectives(out), r"^none, a single rank: 2 GPUs are visible, but libtorch_cuda.so "
                         r"can't be loaded \(.*\); the folder torch/lib of PyTorch 2.11.0 for CUDA must be in "
                         r"LD_LIBRARY_PATH$")

    def test_the_plugin_loads_into_the_real_libtorch_and_finds_no_driver(self):
        """Every symbol of it is there; only the driver is missing."""
        out, _ = self.train(*SMALL, environment={"CUDA_VISIBLE_DEVICES": "0", "LD_LIBRARY_PATH": torch_lib()})
        self.assertRegex(self.collectives(out),
                         r"^none, a single rank: a GPU is visible, but it can't be used: Found no NVIDIA driver")

    def test_who_asks_for_cuda_gets_no_cpu_instead(self):
        _, err = self.train(*SMALL, "--device", "cuda", code=78)
        self.assertEqual(self.cause(err), "trainer: --device: is cuda, but no GPU is visible; --device auto would train "
                                          "on the CPU")
        _, err = self.train(*SMALL, "--device", "gpu", code=78)
        self.assertIn('--device: is "gpu"; it must be auto, cpu or cuda', self.cause(err))

    def test_more_ranks_than_gpus_end_with_both_numbers(self):
        started = [self.start(*SMALL, "--batch-size", 3, rank=rank, world_size=3, environment={
            "CUDA_VISIBLE_DEVICES": "0,1", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "3"}) for rank in range(3)]
        for process in started:
            _, err = self.finish(process, 78)
            self.assertIn("LOCAL_WORLD_SIZE: is 3 where 2 GPUs are visible; NCCL needs a GPU for each rank: at most 2 "
                          "ranks (trainer launch --nproc), or --device cpu", self.cause(err))

    def start_with_fake_gpu(self, rank, node):
        """It finds a plug-in that believes in a GPU; it is never asked to compute on it."""
        folder = self.folder / "bin"
        if not folder.exists():
            folder.mkdir()
            shutil.copy(ENGINE, folder)
            shutil.copy(FAKE_PLUGIN, folder / "libtrainer_nccl.so")
            (folder / "libtorch_cuda.so").symlink_to("/lib/x86_64-linux-gnu/libc.so.6")
        with unittest.mock.patch("engine.ENGINE", str(folder / pathlib.Path(ENGINE).name)):
            return self.start(*SMALL, rank=rank, world_size=2, environment={
                "NODE_NAME": node, "CUDA_VISIBLE_DEVICES": "0", "LD_LIBRARY_PATH": str(folder)})

    def test_ranks_that_share_a_gpu_end_before_nccl_starts(self):
        started = [self.start_with_fake_gpu(rank, "node-a") for rank in (0, 1)]
        for process in started:
            _, err = self.finish(process, 78)
            self.assertIn("rank 0 on node node-a and rank 1 on node node-a have one GPU between them, GPU-0; NCCL needs one "
                          "for each rank: a smaller LOCAL_WORLD_SIZE (trainer launch --nproc), other "
                          "CUDA_VISIBLE_DEVICES, or --device cpu", self.cause(err))

    def test_ranks_that_differ_in_their_device_end_with_the_difference(self):
        rank0 = self.start(*SMALL, rank=0, world_size=2, environment={"NODE_NAME": "node-a"})
        rank1 = self.start_with_fake_gpu(1, "node-b")
        for process in (rank0, rank1):
            _, err = self.finish(process, 78)
            self.assertIn("rank 0 on node node-a trains on cpu (no GPU is visible), but not rank 1 on node node-b (Fake 3000, "
                          "NCCL 2.28.9); --device cpu lets all train on the CPU", self.cause(err))

    def test_the_users_interface_for_gloo_wins_and_a_wrong_one_is_named(self):
        environment = {"GLOO_SOCKET_IFNAME": "lo"}
        ranks = [self.start(*SMALL, rank=rank, world_size=2, environment=environment) for rank in (0, 1)]
        for process in ranks:
            self.finish(process)
        shutil.rmtree(self.out)
        ranks = [self.start(*SMALL, "--rendezvous-timeout-seconds", 5, rank=rank, world_size=2,
                            environment={"GLOO_SOCKET_IFNAME": "eth77"}) for rank in (0, 1)]
        for process in ranks:
            _, err = self.finish(process, 78)
            self.assertRegex(self.cause(err), r'GLOO_SOCKET_IFNAME: is "eth77"; it must be one of .*\blo\b')
