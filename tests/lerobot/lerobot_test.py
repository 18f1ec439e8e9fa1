"""Holds what reads robots' data to LeRobot's own Python, SentencePiece's and Pillow, and exported adapters to PEFT.

usage: lerobot_test.py [NAME...], by the Python of tools/lerobot
"""
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import sentencepiece
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from support import unittests  # noqa: E402
from support.places import BUILD  # noqa: E402

PROBE, TRAINER = BUILD / "trainer/lerobot_probe", BUILD / "trainer/trainer"
PYTHON = pathlib.Path(sys.executable).parent.parent  # of tools/lerobot
SECONDS_MAX = 120
LENGTHS, HORIZON, STATE, ACTION = (7, 12, 3, 9, 16), 6, 5, 6
CAMERAS = {"observation.images.top": (64, 96), "observation.images.wrist": (80, 64)}
SETS = {"v2.1": "h264", "v3.0": "libsvtav1", "image": "image"}
WORK = None  # a folder of this run, with the data sets in it


def make_set(version, codec):
    out = WORK / version
    out.mkdir()
    environment = dict(os.environ, LD_LIBRARY_PATH=str(PYTHON / "stubs"), HF_HOME=str(WORK / "hf"),
                       PYTHONPATH=str(PYTHON / "v21") if version == "v2.1" else "")
    done = subprocess.run([sys.executable, HERE / "lerobot_sets.py", out, codec], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"LeRobot made no data set {version}: {done.stdout.decode(errors='replace')[-3000:]}")


def setUpModule():
    global WORK
    WORK = pathlib.Path(tempfile.mkdtemp(prefix="tj-lerobot-"))
    unittest.addModuleCleanup(shutil.rmtree, WORK)
    for version, codec in SETS.items():
        make_set(version, codec)


def run(*command, code=0, text=None):
    """What was printed, standard error last."""
    done = subprocess.run(list(map(str, command)), input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS_MAX, check=False,
                          env=dict(os.environ, TRAININGJOB_TERMINATION_LOG=os.devnull))
    said = done.stdout if text is not None and code == 0 else done.stdout + done.stderr
    if done.returncode != code:
        raise AssertionError(f"{command}: {done.returncode}, and not {code}: {said[-2000:]}")
    return said if text is not None else said.decode()


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=WORK)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def copy_of(self, version):
        """A data set that may be spoilt."""
        copy = self.folder / f"set-{len(list(self.folder.iterdir()))}"
        shutil.copytree(WORK / version / "set", copy)
        return copy

    def out(self):
        folder = self.folder / f"out-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        return folder

    def samples(self, data, *flags, code=0, tokenizer=None):
        """(tensors of all samples, lines that were printed)"""
        out = self.out()
        said = run(PROBE, "samples", data, out, f"--tokenizer={tokenizer or model()}", *flags, code=code)
        if code != 0:
            return None, said
        count = sum(LENGTHS)
        kinds = (np.uint8, np.uint8, np.int32, np.uint8, np.float32, np.float32, np.int32, np.uint8)
        read = [np.fromfile(out / str(i), kind) for i, kind in enumerate(kinds)]
        read = [tensor.reshape(-1, tensor.size // count) if tensor.size >= count else tensor for tensor in read]
        return read, said.splitlines()


def frames(data, out):
    run(PROBE, "frames", data, HORIZON, out)
    count = sum(LENGTHS)
    read = {"observation.state": np.fromfile(out / "state", np.float32).reshape(count, STATE),
            "action": np.fromfile(out / "action", np.float32).reshape(count, HORIZON, ACTION),
            "action_is_pad": np.fromfile(out / "pad", np.uint8).reshape(count, HORIZON).astype(bool),
            "episode": np.fromfile(out / "episode", np.int32), "task": np.array((out / "tasks").read_text().splitlines())}
    for name, size in CAMERAS.items():
        read[name] = np.fromfile(out / name, np.uint8).reshape(count, *size, 3).transpose(0, 3, 1, 2)
    return read


class Reading(WithFolder):
    def test_every_sample_is_that_of_lerobots_reader(self):
        for version in ("v2.1", "v3.0"):
            with self.subTest(version):
                data = WORK / version / "set"
                self.assertEqual(json.loads((data / "meta/info.json").read_text())["codebase_version"], version)
                theirs, ours = np.load(WORK / version / "read.npz"), frames(data, self.out())
                for name in ("observation.state", "action", "action_is_pad", "episode", "task"):
                    np.testing.assert_array_equal(ours[name], theirs[name], name)
                self.assertGreater(theirs["action_is_pad"].sum(), len(LENGTHS))
                for name in CAMERAS:
                    off = np.abs(ours[name].astype(int) - theirs[name].astype(int))
                    self.assertLessEqual(off.max(), 1, name)
                    neighbours = np.abs(np.diff(theirs[name].astype(int), axis=0)).max(axis=(1, 2, 3))
                    self.assertGreater(neighbours.min(), 8, "frames are told apart")

    def test_an_index_of_the_videos_changes_nothing(self):
        data = self.copy_of("v3.0")
        before = frames(data, self.out())
        run(TRAINER, "prepare", "lerobot", "--input", data)
        self.assertTrue((data / "videos/videos.index.jsonl").exists())
        after = frames(data, self.out())
        for name, values in before.items():
            np.testing.assert_array_equal(values, after[name], name)

    def test_pictures_in_parquet_are_told_what_becomes_of_them(self):
        said = run(PROBE, "samples", WORK / "image/set", self.folder, f"--tokenizer={model()}", code=1)
        self.assertIn('its camera "observation.images.top" is stored as pictures in Parquet', said)
        self.assertIn("convert_image_to_video", said)


def of_set(version):
    read = np.load(WORK / version / "read.npz")
    return read["observation.state"], read["action"][:, 0]


class Statistics(WithFolder):
    def test_those_of_the_data_set_are_read(self):
        for version in ("v2.1", "v3.0"):
            with self.subTest(version):
                ours = json.loads(run(PROBE, "statistics", WORK / version / "set"))
                for name, values in zip(("state", "action"), of_set(version)):
                    np.testing.assert_allclose(ours[name]["mean"], values.mean(0, dtype=np.float64), atol=1e-6)
                    np.testing.assert_allclose(ours[name]["std"], values.std(0, dtype=np.float64), atol=1e-6)
                    np.testing.assert_allclose(ours[name]["max"], values.max(0), atol=1e-6)
                    self.assertEqual(ours[name]["count"], sum(LENGTHS))

    def check(self, ours, values):
        values = values.astype(np.float64)
        np.testing.assert_allclose(ours["mean"], values.mean(0), rtol=0, atol=1e-12)
        np.testing.assert_allclose(ours["std"], values.std(0), rtol=1e-12)
        np.testing.assert_array_equal(ours["min"], values.min(0))
        for name, share in {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}.items():
            np.testing.assert_allclose(ours[name], np.quantile(values, share, axis=0), rtol=1e-12, err_msg=name)

    def prepare(self, data, *flags):
        out = self.out()
        run(TRAINER, "prepare", "lerobot", "--input", data, "--out", out, *flags)
        return out / "trainer_stats.json"

    def test_those_that_are_made_are_exact_whatever_the_threads(self):
        for version in ("v2.1", "v3.0"):
            with self.subTest(version):
                data = WORK / version / "set"
                file = self.prepare(data, "--threads", 1)
                ours = json.loads(file.read_text())
                for name, values in zip(("state", "action"), of_set(version)):
                    self.check(ours[name], values)
                self.assertEqual(self.prepare(data, "--threads", 4).read_bytes(), file.read_bytes())

    def test_actions_minus_the_state_are_counted_over_all_chunks(self):
        data, read = WORK / "v3.0/set", np.load(WORK / "v3.0/read.npz")
        ours = json.loads(self.prepare(data, "--delta-actions", "3,-1", "--horizon", HORIZON).read_text())
        minus = np.zeros((sum(LENGTHS), 1, ACTION), np.float32)
        minus[:, 0, :3] = read["observation.state"][:, :3]
        self.check(ours["action"], (read["action"] - minus)[~read["action_is_pad"]])
        self.assertEqual(ours["action"]["count"], int((~read["action_is_pad"]).sum()))

    def test_a_run_that_is_killed_is_gone_on_with(self):
        data, out = WORK / "v2.1/set", self.out()
        whole = self.prepare(data)
        for attempt in range(12):
            process = subprocess.Popen([TRAINER, "prepare", "lerobot", "--input", data, "--out", out], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=dict(os.environ, TRAININGJOB_TERMINATION_LOG=os.devnull))
            try:
                process.wait(timeout=0.005 * attempt)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=SECONDS_MAX)
        run(TRAINER, "prepare", "lerobot", "--input", data, "--out", out)
        self.assertEqual((out / "trainer_stats.json").read_bytes(), whole.read_bytes())
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["trainer_stats.json", "videos.index.jsonl"])

    def test_of_another_data_set_are_refused_by_name(self):
        other = self.prepare(WORK / "v3.0/set")
        copy = self.copy_of("v2.1")
        _, said = self.samples(copy, f"--statistics={other}", code=1)
        self.assertRegex(said, r"trainer_stats.json: are statistics of another data set, set \(fingerprint \w{12}\), and not of set-\d")
        _, said = self.samples(WORK / "v3.0/set", f"--statistics={other}", "--delta-actions=2", code=1)
        self.assertIn("are statistics of actions as they are, and not of actions minus the state in dimensions 0 1, over 6 steps", said)


MODEL = []


def model():
    """A SentencePiece model of the kind of PaliGemma's: pairs of bytes, unknown letters as bytes, `\\n` a piece of its own."""
    if not MODEL:
        words = "push the red cube open drawer lift pick up and place blue ball into left right box then Task State Action 0 1 2 3 4 5 6 7 8 9 , : ;".split()
        draws = random.Random(3)
        text = [" ".join(draws.choices(words, k=draws.randint(2, 12))) for _ in range(3000)]
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text), model_writer=written, vocab_size=420, model_type="bpe", byte_fallback=True, pad_id=0, eos_id=1, bos_id=2,
            unk_id=3, user_defined_symbols=["\n"], add_dummy_prefix=False, normalization_rule_name="identity", remove_extra_whitespaces=False,
            minloglevel=2)
        MODEL.append(WORK / "tokenizer.model")
        MODEL[0].write_bytes(written.getvalue())
    return MODEL[0]


def prompts(count):
    draws = random.Random(11)
    letters = "abcdefgh_ \n\t0123:;,.ABC'\"äöé日本机器人🤖\u00a0\u2003"
    words = ["push", "the_red", "cube", " open", "drawer\n", "pick up", "Task", "  "]
    for _ in range(count):
        pieces = [draws.choice(words) if draws.random() < 0.6 else draws.choice(letters) for _ in range(draws.randint(0, 18))]
        yield "".join(pieces)


class Prompts(WithFolder):
    def test_ids_are_those_of_sentencepiece(self):
        theirs = sentencepiece.SentencePieceProcessor(model_file=str(model()))
        tasks = list(prompts(1000))
        said = run(PROBE, "encode", model(), text="".join(task + "\0" for task in tasks).encode()).decode().splitlines()
        self.assertEqual(len(said), len(tasks))
        for task, line in zip(tasks, said):
            clean = task.strip().replace("_", " ").replace("\n", " ")  # openpi: PaligemmaTokenizer.tokenize()
            ids = theirs.encode(clean, add_bos=True) + theirs.encode("\n")
            self.assertEqual(list(map(int, line.split())), [len(ids), *(ids + [0] * 64)[:64]], repr(task))

    def test_what_is_no_model_is_named(self):
        cut = self.folder / "cut.model"
        for content in (b"", b"no model", model().read_bytes()[:2000]):
            cut.write_bytes(content)
            said = run(PROBE, "encode", cut, text=b"a\0", code=1).decode()
            self.assertRegex(said, r"cut.model: (is empty|is no SentencePiece model|has no piece for the begin)")

    def test_a_wrong_length_is_named_and_a_cut_is_told(self):
        _, said = self.samples(WORK / "v3.0/set", "--prompt-tokens=4", code=1)
        self.assertRegex(said, r'task 0: the prompt of the task "push the red cube" has \d+ tokens, and the model takes 4')
        read, _ = self.samples(WORK / "v3.0/set", "--prompt-tokens=4", "--cut-prompts")
        self.assertEqual(read[2].shape, (sum(LENGTHS), 4))
        self.assertTrue(read[3].all())


def padded(picture, side):
    """openpi_client/image_tools.py, resize_with_pad, written anew from what it does. In two steps: which of them comes first Pillow 13
    chooses by the size; the versions before it, which openpi has, made rows shorter first, always."""
    ratio = max(picture.width / side, picture.height / side)
    size = int(picture.width / ratio), int(picture.height / ratio)
    whole = Image.new("RGB", (side, side), 0)
    narrow = picture.resize((size[0], picture.height), Image.Resampling.BILINEAR)
    whole.paste(narrow.resize(size, Image.Resampling.BILINEAR), ((side - size[0]) // 2, (side - size[1]) // 2))
    return np.asarray(whole)


class Samples(WithFolder):
    def test_pictures_are_resized_as_pillow_does(self):
        draws = np.random.default_rng(1)
        for height, width, side in ((480, 640, 224), (64, 96, 224), (100, 37, 64), (224, 224, 224), (20, 300, 32), (3, 3, 224)):
            rgb = draws.integers(0, 256, (height, width, 3), dtype=np.uint8)
            made = run(PROBE, "resize", height, width, side, side, text=rgb.tobytes())
            np.testing.assert_array_equal(np.frombuffer(made, np.uint8).reshape(side, side, 3), padded(Image.fromarray(rgb), side), f"{height} x {width}")

    def test_tensors_are_what_a_policy_takes(self):
        data = WORK / "v3.0/set"
        theirs, raw = np.load(WORK / "v3.0/read.npz"), frames(data, self.out())
        (images, mask, tokens, token_mask, state, actions, numbers, pad), said = self.samples(data, "--no-augmentation")
        self.assertTrue(said[0].startswith(f"{sum(LENGTHS)} frames of 5 episodes of set: 5 episodes, 47 frames, LeRobot v3.0"), said)
        self.assertEqual(int(said[2]), sum(LENGTHS) * HORIZON * ACTION)
        np.testing.assert_array_equal(mask, [[1, 1, 0]] * sum(LENGTHS))
        images = images.reshape(-1, 3, 3, 56, 56)
        for slot, name in enumerate(CAMERAS):
            for index in (0, 20, 46):
                picture = Image.fromarray(raw[name][index].transpose(1, 2, 0))
                np.testing.assert_array_equal(images[index, slot].transpose(1, 2, 0), padded(picture, 56), name)
        self.assertFalse(images[:, 2].any())
        own = json.loads((data / "meta/stats.json").read_text())
        for ours, name in ((state.reshape(-1, 1, 8), "observation.state"), (actions.reshape(-1, HORIZON, 8), "action")):
            values = theirs[name].reshape(sum(LENGTHS), -1, STATE if name == "observation.state" else ACTION)
            mean, std = (np.array(own[name][key], np.float32) for key in ("mean", "std"))
            width = values.shape[-1]
            np.testing.assert_allclose(ours[..., :width], (values - mean) / (std + np.float32(1e-8)), rtol=1e-6, atol=1e-6)
            self.assertFalse(ours[..., width:].any())
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model()))
        for index in (0, 8):
            clean = str(theirs["task"][index]).strip().replace("_", " ")
            ids = processor.encode(clean, add_bos=True) + processor.encode("\n")
            self.assertEqual(list(tokens[index]), (ids + [0] * 48)[:48])
            self.assertEqual(int(token_mask[index].sum()), len(ids))
        np.testing.assert_array_equal(numbers.ravel(), range(sum(LENGTHS)))
        np.testing.assert_array_equal(pad, theirs["action_is_pad"])

    def test_a_pi05_has_the_state_in_its_prompt(self):
        data = self.copy_of("v3.0")
        run(TRAINER, "prepare", "lerobot", "--input", data)
        own = json.loads((data / "meta/trainer_stats.json").read_text())["state"]
        low, high = (np.array(own[key], np.float32) for key in ("q01", "q99"))
        (_, _, tokens, _, state, *_), _ = self.samples(data, "--pi05")
        theirs = np.load(WORK / "v3.0/read.npz")
        np.testing.assert_allclose(state[:, :STATE], 2 * (theirs["observation.state"] - low) / (high - low) - 1, rtol=1e-5, atol=1e-6)
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model()))
        for index in range(sum(LENGTHS)):
            words = np.digitize(state[index, :STATE], bins=np.linspace(-1, 1, 257)[:-1]) - 1
            clean = str(theirs["task"][index]).strip().replace("_", " ")
            ids = processor.encode(f"Task: {clean}, State: {' '.join(map(str, words))};\nAction: ", add_bos=True)
            self.assertEqual(list(tokens[index]), (ids + [0] * 200)[:200])

    def test_samples_are_the_same_each_time_and_their_mark_tells_changes(self):
        first, said = self.samples(WORK / "v3.0/set")
        again, same = self.samples(WORK / "v3.0/set")
        for one, other in zip(first, again):
            np.testing.assert_array_equal(one, other)
        self.assertEqual(said, same)
        plain, other = self.samples(WORK / "v3.0/set", "--no-augmentation")
        self.assertNotEqual(said[1], other[1])
        self.assertTrue((first[0] != plain[0]).any())
        evaluated, _ = self.samples(WORK / "v3.0/set", "--eval")
        np.testing.assert_array_equal(plain[0], evaluated[0])

    def test_held_out_episodes_are_in_the_other_part(self):
        count = lambda said: int(said[0].split()[0])  # noqa: E731
        out = self.out()
        said = run(PROBE, "samples", WORK / "v3.0/set", out, f"--tokenizer={model()}", "--held-out=0.4").splitlines()
        held = run(PROBE, "samples", WORK / "v3.0/set", self.out(), f"--tokenizer={model()}", "--held-out=0.4", "--eval").splitlines()
        self.assertEqual((count(said), count(held)), (LENGTHS[0] + LENGTHS[1] + LENGTHS[3], LENGTHS[2] + LENGTHS[4]))

    def test_what_the_data_set_lacks_is_named(self):
        data = WORK / "v2.1/set"
        for flags, words in ((["--camera-map=top=observation.images.front"], 'has no camera "observation.images.front", for top; its cameras are '
                              "observation.images.top, observation.images.wrist"),
                             (["--camera-map=left=observation.images.top"], "the policy has no such camera; it has top is observation.images.top"),
                             (["--action-feature=act"], 'has no feature "act"; its features of numbers are action (6), observation.state (5)'),
                             (["--delta-actions=7"], "says 7 dimensions, and action has 6"), (["--normalisation=quantiles"], "q01 and q99 of 0 and 0"),
                             (["--tokenizer=none.model"], "none.model"), (["--state-feature=observation.images.top"], "and no row of up to 65536 numbers")):
            with self.subTest(flags):
                _, said = self.samples(data, *flags, code=1)
                self.assertIn(words, said)


class Hostile(WithFolder):
    """Whatever is damaged, a program ends with a sentence that names the file, or never noticed."""

    def spoil(self, file, draws):
        content = bytearray(file.read_bytes())
        way = draws.randrange(3)
        if way == 0:
            del content[draws.randrange(len(content)):]
        for _ in range(draws.randint(1, 8) if way else 0):
            if content:
                content[draws.randrange(len(content))] = draws.randrange(256)
        if way == 2 and content:
            at = draws.randrange(len(content))
            content[at:at] = bytes(draws.randrange(256) for _ in range(draws.randint(1, 30)))
        file.write_bytes(content)

    def test_damaged_files_are_named(self):
        draws = random.Random(int(os.environ.get("TJ_SEED", "5")))
        named = 0
        for version in ("v2.1", "v3.0"):
            whole = WORK / version / "set"
            files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
            for _ in range(40):
                copy = self.folder / "spoilt"
                shutil.copytree(whole, copy)
                file = copy / draws.choice(files)
                self.spoil(file, draws)
                done = subprocess.run([PROBE, "samples", copy, self.out(), f"--tokenizer={model()}"], capture_output=True, timeout=SECONDS_MAX, check=False)
                said = done.stderr.decode(errors="replace")
                self.assertIn(done.returncode, (0, 1), f"{file}: {done.returncode} {said[-800:]}")
                if done.returncode == 1:
                    named += 1
                    self.assertRegex(said, r"lerobot_probe: \S.*: .")
                shutil.rmtree(copy)
        self.assertGreater(named, 20)

    def test_a_damaged_tokenizer_ends_well(self):
        draws = random.Random(7)
        file = self.folder / "spoilt.model"
        for _ in range(60):
            shutil.copy(model(), file)
            self.spoil(file, draws)
            done = subprocess.run([PROBE, "encode", file], input=b"push the cube\0", capture_output=True, timeout=SECONDS_MAX, check=False)
            self.assertIn(done.returncode, (0, 1), f"{done.returncode} {done.stderr.decode(errors='replace')[-800:]}")

    def test_what_does_not_fit_together_is_named(self):
        def edit(path, change):
            def spoil(data):
                json_file = data / path
                value = json.loads(json_file.read_text())
                change(value)
                json_file.write_text(json.dumps(value))
            return spoil

        cases = (
            ("v3.0", edit("meta/info.json", lambda info: info.update(total_frames=46)), r"dataset_to_index must be from 32 to 46, and is 47"),
            ("v3.0", edit("meta/info.json", lambda info: info.update(data_path="../{chunk_index}")), r"leads out of the data set"),
            ("v3.0", edit("meta/info.json", lambda info: info["features"]["action"].update(shape=[5])), r'column "action": row 0: has more than 5 numbers'),
            ("v3.0", edit("meta/info.json", lambda info: info["features"]["action"].update(shape=[7])), r'column "action": row 0: has 6 and not 7 numbers'),
            ("v3.0", edit("meta/info.json", lambda info: info.update(fps=0)), r"info.json: fps must be above 0, and is 0"),
            ("v3.0", lambda data: next(data.rglob("file-000.mp4")).unlink(), r"file-000.mp4: can't be looked at"),
            ("v2.1", lambda data: (data / "data/chunk-000/episode_000003.parquet").unlink(), r"episode_000003.parquet: can't be looked at"),
            ("v2.1", lambda data: shutil.copy(data / "data/chunk-000/episode_000001.parquet", data / "data/chunk-000/episode_000003.parquet"),
             r"episode_000003.parquet: has 12 rows, and meta/ says 9 \(episodes 3 to 3\)"),
            ("v2.1", lambda data: shutil.copy(data / "videos/chunk-000/observation.images.top/episode_000002.mp4",
                                              data / "videos/chunk-000/observation.images.top/episode_000001.mp4"),
             r"episode_000001.mp4: episode 1, frame 3: no frame is shown at 0.3\d* s: it has 3 frames at 10 a second"),
            ("v2.1", lambda data: (data / "meta/tasks.jsonl").write_text('{"task_index": 1, "task": "a"}\n'), r"tasks.jsonl: line 1: task_index must be the next one, and is 1"))
        for version, spoil, words in cases:
            with self.subTest(words):
                data = self.copy_of(version)
                spoil(data)
                _, said = self.samples(data, code=1)
                self.assertRegex(said, words)

    def test_trainer_prepare_names_them_too(self):
        data = self.copy_of("v3.0")
        video = next(data.rglob("file-000.mp4"))
        video.write_bytes(video.read_bytes()[:300])
        said = run(TRAINER, "prepare", "lerobot", "--input", data, code=65)
        self.assertRegex(said, rf"trainer prepare lerobot: {re.escape(str(video))}: ")
        said = run(TRAINER, "prepare", "lerobot", "--input", self.folder, code=65)
        self.assertIn("is no LeRobot data set", said)
        said = run(TRAINER, "prepare", "lerobot", "--input", WORK / "v3.0/set", "--out", self.out(), "--delta-actions", "6", code=78)
        self.assertIn("--delta-actions 6: says 6 dimensions, and the state has 5 and the action 6", said)


def main(names):
    import adapter_test
    import pi0_test
    import policy_test  # it takes from this file what both need
    loader, modules = unittest.defaultTestLoader, (sys.modules["__main__"], policy_test, adapter_test, pi0_test)
    suite = unittest.TestSuite()
    for name in names:
        suite.addTest(loader.loadTestsFromName(name, next(each for each in modules if hasattr(each, name.split(".")[0]))))
    if not names:
        suite.addTests(map(loader.loadTestsFromModule, modules))
    return unittests.tell(suite)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
