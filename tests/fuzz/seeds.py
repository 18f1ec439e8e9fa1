"""What each fuzzer begins with: examples and data of the other tests, and what a test can't hold as a file.

  seeds_of(NAME)   the inputs of one fuzzer as (name, bytes)

What a fuzzer has found lies in found/NAME, one input a file, and is tried first, always.
"""
import copy
import json
import pathlib
import struct
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOUND = pathlib.Path(__file__).resolve().parent / "found"


def files(*patterns):
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            yield path.name, path.read_bytes()


def texts(name, *values):
    for number, value in enumerate(values):
        yield f"{name}-{number}", (value if isinstance(value, str) else json.dumps(value)).encode()


CONTAINER = {"name": "main", "image": "i", "command": ["train", "--out", "/out/$(RANK)"], "args": ["$$(X)", "/data/a"],
             "workingDir": "/out", "env": [{"name": "A", "value": "$(WORLD_SIZE)"},
                                           {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
             "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "1Gi"}},
             "volumeMounts": [{"name": "out", "mountPath": "/out", "subPath": "a/b"},
                              {"name": "data", "mountPath": "/data"}]}
TEMPLATE = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"kubebrain.io/progress-port": "off"}},
    "spec": {"containers": [CONTAINER, {"name": "sidecar", "image": "s"}],
             "initContainers": [{"name": "init", "image": "i", "command": ["true"]}],
             "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
             "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                 {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
             "volumes": [{"name": "out", "persistentVolumeClaim": {"claimName": "c"}},
                         {"name": "data", "hostPath": {"path": "/data"}}, {"name": "tmp", "emptyDir": {}}]}}
SPEC = {"replicaSpecs": {"Worker": {"replicas": 2, "template": TEMPLATE}},
        "runPolicy": {"maxRestarts": 3, "activeDeadlineSeconds": 3600, "startDeadlineSeconds": 60,
                      "ttlSecondsAfterFinished": 60, "restartBudgetResetSeconds": 600, "heartbeatTimeoutSeconds": 120,
                      "cleanPodPolicy": "All", "suspend": False},
        "failurePolicy": {"rules": [{"action": "Fail", "exitCodes": [3], "causes": ["Hung"], "signals": [9]}]},
        "nodeLoss": {"toleranceSeconds": 30, "forceDeleteSeconds": 30}, "network": {"networkPolicy": True}}
STATUS = {"phase": "Running", "attempt": 1, "worldSize": 2, "templateHash": "0123456789abcdef", "restarts": 1,
          "restartsCounted": 1, "restartStep": 20, "startTime": "2026-06-01T11:00:00Z",
          "attemptStartTime": "2026-06-01T11:30:00.123456Z", "runningTime": "2026-06-01T11:31:00Z",
          "nodeFailures": [{"node": "n1", "count": 1}], "excludedNodes": ["n2"],
          "replicaStatuses": {"Worker": {"desired": 2, "active": 2, "ready": 2, "succeeded": 0, "failed": 0}},
          "firstFailure": {"attempt": 0, "rank": 1, "node": "n1", "cause": "ExitCode", "exitCode": 137, "signal": 9,
                           "reason": "OOMKilled", "message": "m", "finishedAt": "2026-06-01T11:20:00Z", "collateral": 1,
                           "step": 20},
          "progress": {"attempt": 1, "step": 40, "totalSteps": 100, "phase": "step", "etaSeconds": 60, "loss": 2.5,
                       "tokensPerSecond": 1e5, "mfu": 0.4, "updatedAt": "2026-06-01T11:40:00Z"},
          "lastCheckpoint": {"step": 40, "path": "/out/step-40", "time": "2026-06-01T11:40:00Z"},
          "conditions": [{"type": "Running", "status": "True", "reason": "r", "message": "m", "observedGeneration": 1,
                          "lastTransitionTime": "2026-06-01T11:31:00Z"}],
          "troubledRanks": [{"rank": 1, "pod": "j-worker-1", "node": "n1", "reason": "r", "message": "m"}]}
JOB = {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "spec": SPEC, "status": STATUS,
       "metadata": {"name": "j", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 1,
                    "creationTimestamp": "2026-06-01T11:00:00Z"}}
PROGRESS = {"attempt": 1, "phase": "step", "step": 50, "steps": 100, "loss": 2.25, "tokensPerSecond": 1234.5, "mfu": 0.4,
            "etaSeconds": 50.5, "lastCheckpoint": {"step": 40, "path": "/out/step-40"}, "heartbeatAgeSeconds": 0.5,
            "stalled": [{"rank": 1, "node": "n1", "phase": "step", "seconds": 200.5}]}
WORDS = {"reason": "BadData", "message": "shard 3 is cut short", "rank": 1, "step": 41, "attempt": 1}
NODE = {"metadata": {"name": "n1"}, "status": {"conditions": [
    {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-06-01T11:59:00Z"}]}}
SERVICE = {"metadata": {"name": "j", "namespace": "n", "uid": "s", "labels": {"kubebrain.io/trainingjob": "j"},
                        "ownerReferences": [{"controller": True, "uid": "u"}]}}
RUNNING = {"state": {"running": {"startedAt": "2026-06-01T11:31:00Z"}}}
WAITING = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
ENDED = {"state": {"terminated": {"exitCode": 3, "reason": "Error", "message": json.dumps(WORDS),
                                  "finishedAt": "2026-06-01T11:50:00Z"}}}


def pod(rank, phase, state, **metadata):
    return {"metadata": {"name": f"j-worker-{rank}", "namespace": "n", "uid": f"p{rank}", "resourceVersion": "9",
                         "labels": {"job-name": "j", "kubebrain.io/trainingjob": "j", "kubebrain.io/attempt": "1",
                                    "kubebrain.io/worker-index": str(rank)},
                         "ownerReferences": [{"controller": True, "uid": "u"}], **metadata},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
            "status": {"phase": phase, "podIP": "10.0.0.1", "containerStatuses": [{"name": "main", "ready": True, **state}],
                       "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
                                       "message": "m"},
                                      {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                       "message": "0/2 nodes", "lastTransitionTime": "2026-06-01T11:30:00Z"}]}}


def cluster():
    new = copy.deepcopy(JOB)
    del new["status"]
    worlds = {"new": [new, []], "running": [JOB, [pod(0, "Running", RUNNING), pod(1, "Running", RUNNING)]],
              "waiting": [JOB, [pod(0, "Pending", WAITING)]], "missing": [JOB, []],
              "failed": [JOB, [pod(0, "Running", RUNNING), pod(1, "Failed", ENDED)]],
              "leaving": [JOB, [pod(0, "Running", RUNNING, deletionTimestamp="2026-06-01T11:59:00Z")]],
              "done": [JOB, [pod(0, "Succeeded", ENDED), pod(1, "Succeeded", ENDED)]]}
    for name, (job, pods) in worlds.items():
        world = {"jobs": [job], "pods": pods, "nodes": [NODE], "services": [SERVICE], "progress": [PROGRESS]}
        yield name, json.dumps(world).encode()


def watch():
    version = {"metadata": {"resourceVersion": "5", "continue": "c"}}
    page = {"kind": "PodList", **version, "items": [pod(0, "Running", RUNNING, managedFields=[{"x": 1}])]}
    lines = [{"type": "ADDED", "object": pod(0, "Pending", WAITING, managedFields=[{}])},
             {"type": "MODIFIED", "object": pod(0, "Running", RUNNING)}, {"type": "BOOKMARK", "object": version},
             {"type": "DELETED", "object": pod(0, "Failed", ENDED)}, {"type": "ADDED", "object": JOB},
             {"type": "ERROR", "object": {"code": 410, "message": "gone", "details": {"retryAfterSeconds": 3}}}]
    yield "page", json.dumps(page).encode()
    yield "stream", "\r\n".join(map(json.dumps, lines)).encode()
    yield from texts("line", *lines)


def kubeconfig():
    head = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {cluster: k, user: u, namespace: n}\n"
    cluster = "clusters:\n- name: k\n  cluster:\n    server: https://h:6443\n"
    for name, more in {"token": "users:\n- name: u\n  user: {token: t}\n",
                       "files": "    certificate-authority: ca.crt\nusers:\n- name: u\n  user: {client-certificate: a, client-key: b}\n",
                       "data": "    certificate-authority-data: YWJj\nusers:\n- name: u\n  user: {client-certificate-data: YQ==, client-key-data: Yg==}\n",
                       "exec": "users:\n- name: u\n  user: {exec: {command: x}}\n",
                       "plug-in": "users:\n- name: u\n  user:\n    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./x, args: [a],"
                                  " env: [{name: A, value: b}], interactiveMode: Never, provideClusterInfo: true, installHint: h}\n",
                       "as": "users:\n- name: u\n  user: {username: a, password: b, as: c, as-groups: [d], as-user-extra: {e: [f]}}\n",
                       "proxy": "    proxy-url: http://a:b@[::1]:3128\nusers:\n- name: u\n  user: {auth-provider: {name: gcp}}\n",
                       "insecure": "    insecure-skip-tls-verify: true\n    proxy-url: p\n"}.items():
        yield name, (head + cluster + more).encode()


def launch():
    """The stories of the golden file: their variables, one a line."""
    stories = (ROOT / "tests/golden/launch/conventions.txt").read_text().split("\n\n")
    for number, story in enumerate(stories):
        lines = [line for line in story.splitlines() if line.startswith("env ")]
        if lines:
            yield f"story-{number}", "\n".join(" ".join(line[4:] for line in lines).split()).encode()


def torch_pickle():
    """As torch.save writes it: a tensor of 2 x 3, twice, and an entry that is no tensor."""
    tensor = (b"ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03ctorch\nHalfStorage\nq\x04X\x01\x00\x00\x000q\x05"
              b"X\x03\x00\x00\x00cpuq\x06K\x06tq\x07QK\x00K\x02K\x03\x86q\x08K\x03K\x01\x86q\x09\x89ccollections\nOrderedDict\nq\x0a)Rq\x0btq\x0cR")
    flat = b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01" + tensor + b"q\x0dX\x01\x00\x00\x00bh\x0dX\x04\x00\x00\x00stepK\x07u."
    yield "flat", flat
    yield "nested", b"\x80\x02}(X\x0a\x00\x00\x00state_dict" + flat[2:-1] + b"u."
    yield "call", b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00echo\x85R."


def safetensors():
    header = {"__metadata__": {"step": "7"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
              "b": {"dtype": "BF16", "shape": [4], "data_offsets": [24, 32]},
              "c": {"dtype": "F16", "shape": [], "data_offsets": [32, 34]},
              "d": {"dtype": "I64", "shape": [0, 9], "data_offsets": [34, 34]}}
    text = json.dumps(header).encode()
    yield "header", text
    yield "file", struct.pack("<Q", len(text)) + text + bytes(34)
    yield "empty", struct.pack("<Q", 2) + b"{}"
    yield "long", struct.pack("<Q", 1 << 40) + b"{}"


def token_file():
    for width, tokens in ((1, 5), (2, 3), (4, 0), (2, 40_000)):
        payload = bytes(width * tokens)
        chunks = [payload[at:at + 65536] for at in range(0, len(payload), 65536)]
        table = b"".join(struct.pack("<I", zlib.crc32(chunk)) for chunk in chunks)
        head = struct.pack("<8sIIqqqII32s32s", b"TJTOKENS", 1, width, 256, tokens, 1, 65536, zlib.crc32(table), b"byte", b"h" * 32)
        head += bytes(124 - len(head))
        yield f"{width}-{tokens}", head + struct.pack("<I", zlib.crc32(head)) + payload + table


def tokenizer_json():
    """All bytes and two merges; and little ones, which are mutated faster, of which each is refused for another reason."""
    document = json.loads((ROOT / "tests/trainer/data/chinese/tokenizer.json").read_text())
    model = document["model"]
    model["merges"] = model["merges"][:2]
    kept = {"".join(merge) for merge in model["merges"]}
    model["vocab"] = {token: number for token, number in model["vocab"].items() if number <= 256 or token in kept}
    yield "bytes", json.dumps(document).encode()
    small = {**document, "model": {**model, "vocab": {"<|endoftext|>": 0, "a": 1, "b": 2, "ab": 3}, "merges": [["a", "b"]]}}
    yield from texts("small", small, {**small, "model": {**small["model"], "merges": ["a b"]}},
                     {**small, "post_processor": {"type": "ByteLevel"}}, {**small, "added_tokens": []})


CHECKPOINT = {"version": 2, "step": 25, "next_sample": 800, "optimizer_steps": 24, "seed": 1337, "data_tokens": 4096,
              "loss": 2.25, "loss_scale": {"scale": 65536.0, "good_steps": 3},
              "model": {"layers": 2, "heads": 2, "width": 8, "context": 4, "vocabulary": 256},
              "numerics": {"logical_shards": 8, "batch_size": 8, "threads": 1, "has_averages": True},
              "files": {"model.safetensors": {"bytes": 10, "sha256": "ab"}}}
TOKEN_FILES = {"tokens": 5, "documents": 1, "shards": [{"file": "a.tok", "tokens": 5, "documents": 1, "header_crc32": "0x1"}]}
TOKENS = {"kind": "trainingjob-tokens", "version": 1, "train": TOKEN_FILES, "val": TOKEN_FILES,
          "made_from": {"tokenizer": "byte", "tokenizer_sha256": "ab", "vocabulary": 256, "document_end": 0, "format": "text",
                        "field": "text", "val_fraction": "0.1", "part_bytes": 8, "input_files": 2, "input_bytes": 30,
                        "input_sha256": "cd"}}
DEEPSPEED = {"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8,
             "fp16": {"enabled": True, "loss_scale": 0}, "gradient_clipping": 1.0, "zero_optimization": {"stage": 2},
             "optimizer": {"type": "AdamW", "params": {"lr": 2e-5, "betas": [0.9, 0.95], "weight_decay": "auto"}},
             "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 100, "total_num_steps": 1000}}}
VIDEO = {"version": 1, "name": "b/a.mp4", "bytes": 5000, "modified_ns": 1_700_000_000_123_456_789, "frames": 4, "width": 96,
         "height": 64, "seconds": 1.25, "rate": [24000, 1001], "codec": "h264", "times": {"start": 0, "step": [512, 1]},
         "key_every": 3}
LEROBOT = {"codebase_version": "v3.0", "fps": 30, "total_episodes": 2, "total_frames": 9, "chunks_size": 1000,
           "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
           "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
           "features": {"action": {"dtype": "float32", "shape": [7]}, "top": {"dtype": "video", "shape": [480, 640, 3]}}}
ROBOT_STATISTICS = {"version": 1, "data_set": "reach", "fingerprint": "ab", "horizon": 50, "delta_actions": [True, False],
                    "state": {"feature": "observation.state", "count": 9, "mean": [0.5], "std": [1]},
                    "action": {"feature": "action", "count": 9, "min": [0, 1], "max": [2, 1], "q01": [0, 1], "q99": [2, 1]}}
CONVERSATION = {"images": ["a.png", "b.jpg", "c.webp"], "video": "d.mp4", "messages": [
    {"role": "system", "content": "S"}, {"from": "human", "value": "<image>\n<image>\nwhere? <video>"}, {"role": "assistant", "content": "left"},
    {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "and now?"}]}, {"from": "gpt", "value": "right"}]}
INDEX_OF_CONVERSATIONS = [
    {"format": "trainer conversations 1", "digest": "00ff", "count": 70, "data_root": "/data", "tokenizer": "", "decoded": 1},
    {"part": 1, "turns": 4, "pictures": 2, "videos": 0, "video_frames": 0, "text_bytes": 90, "text_tokens": 0, "text_tokens_max": 0, "pictures_max": 2,
     "sizes": [["640 x 480", 2]], "broken": [[65, "is no JSON"]]}]
DENIAL = {"kind": "Status", "code": 403, "message": "exceeded quota", "details": {"retryAfterSeconds": 3}}

SEEDS = {
    "manifest": lambda: files("manifests/examples/*.yaml", "tests/crd/manifests/*.yaml", "tests/cli/bad/*.yaml",
                              "tests/cli/jobs/*.yaml", "tests/cli/other_kinds/*.yaml"),
    "template": lambda: texts("template", TEMPLATE, {"spec": {"containers": [{"name": "m", "command": ["x"]}]}}),
    "cluster": cluster,
    "watch": watch,
    "answer": lambda: texts("answer", DENIAL, "<html>502</html>", "7", "\u00e9" * 200),
    "kubeconfig": kubeconfig,
    "progress": lambda: texts("progress", PROGRESS, {"step": 1}),
    "termination": lambda: texts("words", WORDS, {**WORDS, "message": "\u00e9" * 5000}, "a line\nTraceback: no\n"),
    "launch": launch,
    "hostlist": lambda: texts("hosts", "node[001-003,007]", "rack[1-2]n[01-04],login", "8(x2),4", "a,b"),
    "safetensors": safetensors,
    "torch_pickle": torch_pickle,
    "checkpoint": lambda: texts("manifest", CHECKPOINT),
    "deepspeed": lambda: [*texts("config", DEEPSPEED, {"train_batch_size": "auto"}), *files("tests/golden/trainer/deepspeed_*.json")],
    "accelerate": lambda: [*files("tests/golden/trainer/deepspeed_*.yaml"),
                           *texts("config", "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: 1}\n")],
    "token_file": token_file,
    "token_manifest": lambda: texts("manifest", TOKENS),
    "tokenizer_json": tokenizer_json,
    "conversation": lambda: texts("data", CONVERSATION, [CONVERSATION, CONVERSATION], {"messages": CONVERSATION["messages"][1:]},
                                  json.dumps(INDEX_OF_CONVERSATIONS[0]) + "\n" + json.dumps(INDEX_OF_CONVERSATIONS[1]) + "\n"),
    "picture": lambda: files("tests/trainer/data/pictures/*"),
    "video_index": lambda: texts("line", VIDEO, {**VIDEO, "times": {"start": -3, "runs": [[2, 41, 0], [2, 42, 82]]}, "keys": [0, 2]},
                                 {**VIDEO, "broken": "is no video"}),
    "lerobot": lambda: texts("meta", LEROBOT, {**LEROBOT, "codebase_version": "v2.1", "data_path": "data/chunk-{episode_chunk:03d}/{episode_index}.parquet"},
                             ROBOT_STATISTICS),
}


def seeds_of(name):
    yield from SEEDS[name]()
    for path in sorted((FOUND / name).glob("*")):
        yield path.name, path.read_bytes()
