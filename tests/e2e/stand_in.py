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


def job(name, script, replicas=2, env=None, **spec):
    """A job whose workers share the nodes as evenly as the nodes that are there allow, and stop when they are asked to. It restarts
    without a wait, unless `spec` says otherwise."""
    container = {"name": "training", "image": IMAGE, "imagePullPolicy": "IfNotPresent",
                 "command": ["/bin/bash", "-c", f"trap 'exit 143' TERM\n{script}"], "env": env or [],
                 "volumeMounts": [{"name": "data", "mountPath": "/mnt/project"}]}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
              "labelSelector": {"matchLabels": {"job-name": name}}}
    pod = {"terminationGracePeriodSeconds": 2, "containers": [container], "topologySpreadConstraints": [spread],
           "volumes": [{"name": "data", "hostPath": {"path": "/mnt/project"}}]}
    spec["runPolicy"] = {"restartBackoffSeconds": 0, **spec.get("runPolicy", {})}
    return {"apiVersion": "kubebrain.io/v1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {**spec, "replicaSpecs": {"Worker": {"replicas": replicas, "template": {"spec": pod}}}}}


def container_of(manifest):
    return manifest["spec"]["replicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]


def waits_for(word):
    """A line of bash that waits for `release(word)`."""
    return f"until [ -e /mnt/project/{word} ]; do sleep 0.2; done"


def fails_once(rank, what):
    """A line of bash that does something in one rank of the first attempt only."""
    return f"if [ $RANK.$TRAININGJOB_ATTEMPT = {rank}.0 ]; then {what}; fi"


def release(word):
    world.write_on_nodes(f"/mnt/project/{word}", "go\n")
