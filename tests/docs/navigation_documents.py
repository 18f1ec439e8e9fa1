"""Qwen2.5-VL's document and the large job beside it: the job has what its start scripts asked for, its flags train a small model, and the way from a script's
variables to a running job is short."""
import json
import pathlib
import tempfile
import unittest

import console
import markdown
import yaml
from documents import ROOT, read
from programs import program_output

MANIFEST = "manifests/examples/qwen-vggt-16gpu.yaml"
DOCUMENT = "docs/systems/qwen-vggt.md"
COMMANDS_MAX = 5


class LargeNavigationJob(unittest.TestCase):
    def setUp(self):
        self.config, self.job = yaml.safe_load_all(read(MANIFEST))
        self.worker = self.job["spec"]["replicaSpecs"]["Worker"]
        self.pod = self.worker["template"]["spec"]
        (self.container,) = self.pod["containers"]
        self.variables = {each["name"]: each["value"] for each in self.container["env"]}
        (self.file,) = self.config["data"]
        self.deepspeed = json.loads(self.config["data"][self.file])

    def mounted_at(self, path):
        (mount,) = [each for each in self.container["volumeMounts"] if each["mountPath"] == path]
        (volume,) = [each for each in self.pod["volumes"] if each["name"] == mount["name"]]
        return volume

    def test_it_has_two_nodes_of_eight_gpus_with_infiniband_and_shared_memory(self):
        limits = self.container["resources"]["limits"]
        self.assertEqual((self.worker["replicas"], limits["nvidia.com/gpu"]), (2, 8))
        self.assertTrue([name for name in limits if name.startswith("rdma/")])
        self.assertEqual(self.container["securityContext"]["capabilities"]["add"], ["IPC_LOCK"])
        self.assertEqual(self.mounted_at("/dev/shm")["emptyDir"]["medium"], "Memory")
        self.assertFalse([name for name in self.variables if name.startswith("NCCL_")])

    def test_its_deepspeed_file_is_the_one_that_people_bring_and_makes_a_batch_of_128(self):
        self.assertEqual(self.deepspeed, json.loads(read("tests/golden/trainer/deepspeed_zero3.json")))
        (flag,) = [word for word in self.container["args"] if word.startswith("--deepspeed=")]
        folder, _, name = flag.removeprefix("--deepspeed=").rpartition("/")
        self.assertEqual((self.mounted_at(folder)["configMap"]["name"], name), (self.config["metadata"]["name"], self.file))
        passes, samples = int(self.variables["GRAD_ACCUM_STEPS"]), int(self.variables["PER_DEVICE_BATCH"])
        self.assertEqual((passes, samples), (self.deepspeed["gradient_accumulation_steps"], self.deepspeed["train_micro_batch_size_per_gpu"]))
        self.assertEqual(samples * passes * 2 * 8, 128)

    def test_its_flags_and_variables_train_a_small_model(self):
        flags = dict((*word.split("=", 1), None)[:2] for word in self.container["args"])
        rooms = ROOT / "manifests/examples/navigation"
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, self.file).write_text(json.dumps(self.deepspeed))
            del flags["--epochs"]
            flags |= {"--model": "qwen-vggt-nano", "--data": rooms / "set", "--tokenizer": rooms / "tokenizer.json", "--out": f"{folder}/out",
                      "--deepspeed": f"{folder}/{self.file}", "--steps": 2, "--held-out": 0.1, "--eval-batches": 1}
            words = [name if value is None else f"{name}={value}" for name, value in flags.items()]
            told = self.variables | {"MODEL_PATH": "", "VGGT_MODEL_PATH": "random", "DATA_ROOT": str(rooms / "set"), "OMP_NUM_THREADS": "1"}
            status, output = program_output("env", *(f"{name}={value}" for name, value in told.items()), "trainer", "launch", "--nproc", "2", "--",
                                            "trainer", "train", *words)
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"(?m)^\[rank 0\] Step 2/2 \| Loss: ")
        self.assertRegex(output, r"(?m)^\[rank 0\] eval after step 2 \|")
        self.assertRegex(output, r"(?m)^\[rank 0\] deepspeed: zero_optimization\.stage 3 \| --zero 3$")


class NavigationDocument(unittest.TestCase):
    def test_from_a_scripts_variables_to_a_running_job_there_are_few_commands(self):
        (fence,) = markdown.fences(markdown.section(read(DOCUMENT), "In five commands"))
        self.assertTrue(fence.info.startswith("console run"))  # which Commands runs
        commands = [command for command, _ in console.steps(fence.text)]
        self.assertLessEqual(len(commands), COMMANDS_MAX)
        self.assertTrue(commands[-1].startswith("tj run "))
