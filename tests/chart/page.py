"""The page inside the cluster: off until it is asked for, without a right, and apart from the operators."""
import subprocess

from rendering import CHART, HELM, NAME, ROOT, equal, expect, helm, render, test

PAGE = f"{NAME}-page"
ON = "page.enabled=true"


def container():
    return render(ON)[("Deployment", PAGE)]["spec"]["template"]["spec"]["containers"][0]


@test
def the_page_is_off_until_it_is_asked_for():
    equal([key for key in render() if "page" in key[1]], [], "what comes by default")
    equal(sorted(kind for kind, name in render(ON) if name == PAGE), ["Deployment", "NetworkPolicy", "Service", "ServiceAccount"], "what comes")


@test
def the_page_has_no_right_and_no_token():
    objects = render(ON)
    spec = objects[("Deployment", PAGE)]["spec"]["template"]["spec"]
    equal((spec["serviceAccountName"], spec["automountServiceAccountToken"]), (PAGE, False), "the account of the pod")
    equal(objects[("ServiceAccount", PAGE)]["automountServiceAccountToken"], False, "what the account says")
    bound = [subject["name"] for (kind, _), item in objects.items() if kind.endswith("Binding") for subject in item["subjects"]]
    expect(PAGE not in bound, "the page's account has a role")
    equal(spec["volumes"], [{"name": "authorities", "configMap": {"name": "kube-root-ca.crt"}}], "what it mounts")


@test
def the_page_is_hardened_as_the_operator_is():
    objects = render(ON)
    operator, page = (objects[("Deployment", name)]["spec"]["template"]["spec"] for name in (NAME, PAGE))
    equal(page["securityContext"], operator["securityContext"], "the pod's security context")
    equal(page["containers"][0]["securityContext"], operator["containers"][0]["securityContext"], "the container's security context")
    equal(page["containers"][0]["image"], operator["containers"][0]["image"], "the image")


@test
def nothing_that_selects_operators_selects_the_page():
    objects = render(ON)
    labels = objects[("Deployment", PAGE)]["spec"]["template"]["metadata"]["labels"].items()
    for key in (("Deployment", NAME), ("PodDisruptionBudget", NAME)):
        expect(not objects[key]["spec"]["selector"]["matchLabels"].items() <= labels, f"{key} selects the page")
    expect(not objects[("NetworkPolicy", NAME)]["spec"]["podSelector"]["matchLabels"].items() <= labels, "the operators' policy selects the page")
    expect(not objects[("Service", f"{NAME}-metrics")]["spec"]["selector"].items() <= labels, "the metrics' Service selects the page")
    expect(objects[("Deployment", PAGE)]["spec"]["selector"]["matchLabels"].items() <= labels, "the page's Deployment does not select it")
    expect(objects[("Service", PAGE)]["spec"]["selector"].items() <= labels, "the page's Service does not select it")
    expect(objects[("NetworkPolicy", PAGE)]["spec"]["podSelector"]["matchLabels"].items() <= labels, "the page's policy does not select it")


@test
def the_page_is_reached_by_whom_and_by_what_name_the_values_say():
    equal(render(ON)[("NetworkPolicy", PAGE)]["spec"]["ingress"], [], "who may connect by default")
    peers = render(ON, "page.from[0].podSelector.matchLabels.app=ingress")[("NetworkPolicy", PAGE)]["spec"]["ingress"]
    equal(peers, [{"from": [{"podSelector": {"matchLabels": {"app": "ingress"}}}], "ports": [{"protocol": "TCP", "port": "http"}]}], "who may")
    expect(("NetworkPolicy", PAGE) not in render(ON, "networkPolicy.enabled=false"), "a policy that was not asked for")
    told = render(ON, "page.hosts={jobs.example.org}", "watchNamespace=team")[("Deployment", PAGE)]["spec"]["template"]["spec"]["containers"][0]["args"]
    hosts = [told[at + 1] for at, word in enumerate(told) if word == "--host"]
    equal(hosts, [PAGE, f"{PAGE}.ops", f"{PAGE}.ops.svc", "jobs.example.org"], "its names")
    equal(told[-2:], ["--namespace", "team"], "what is shown first")
    for setting, word in (("page.hosts={http://a}", "hosts"), ("page.host=a", "host"), ("page.enabled=yes", "enabled")):
        refused = helm(setting)
        expect(refused.returncode != 0 and word in refused.stderr, f"{setting}: {refused.stderr}")


@test
def the_program_knows_every_flag_that_the_chart_gives_it():
    """`tj` is not there in a checkout without a build; the flags are read from its source."""
    source = (ROOT / "cli/commands/serve.cc").read_text()
    for word in container()["args"]:
        if word.startswith("--"):
            expect(f'"{word}"' in source or f",{word}\"" in source, f"tj serve has no {word}")
    equal(container()["command"], ["/usr/local/bin/tj"], "the program")


@test
def the_notes_say_how_to_open_the_page():
    command = [HELM, "install", "tj", CHART, "--namespace", "ops", "--dry-run=client", "--hide-notes=false", "--set", ON]
    notes = subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("NOTES:")[2]
    expect(f"port-forward service/{PAGE} 8080" in notes, notes)
