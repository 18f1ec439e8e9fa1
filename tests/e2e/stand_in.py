"""A training image that does not train: Debian's bash under the name that a platform's image has, and jobs that run
a line of bash in it. What such a job waits for is a file on its node, so that a story decides when it goes on."""
import world

IMAGE = "your-registry/taehv-training:latest"


def archive():
    """The docker archive of the image, made from the base of our own images."""
    base = world.run(world.ROOT / "tools/images", "base").strip()
    path = world.CACHE / "images" / f"stand-in-{base.rpartition(':')[2]}.tar"
    if not path.exists():
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        world.run(world.ROOT / "tools/buildah", "push", "-q", base, f"docker-archive:{part}:docker.io/{IMAGE}")
        part.rename(path)
    return path


def job(name, script, replicas=2, env=None):
    container = {"name": "training", "image": IMAGE, "imagePullPolicy": "IfNotPresent",
                 "command": ["/bin/bash", "-c", script], "env": env or [],
                 "volumeMounts": [{"name": "data", "mountPath": "/mnt/project"}]}
    pod = {"terminationGracePeriodSeconds": 2, "containers": [container],
           "volumes": [{"name": "data", "hostPath": {"path": "/mnt/project"}}]}
    return {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"replicaSpecs": {"Worker": {"replicas": replicas, "template": {"spec": pod}}}}}


def waits_for(word):
    """A line of bash that waits for `release(word)`."""
    return f"until [ -e /mnt/project/{word} ]; do sleep 0.2; done"


def release(word):
    world.write_on_nodes(f"/mnt/project/{word}", "go\n")
