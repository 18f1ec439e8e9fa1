"""The rights that docs/installing.md says the operator has, and those that a server says an account has."""
import pathlib
import sys

from support.places import ROOT
from support.waiting import equal

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
import markdown  # noqa: E402


def documented():
    """{(resource, verb)} of the table, and of these the ones in the operator's own namespace only."""
    rows = markdown.rows(markdown.section((ROOT / "docs/installing.md").read_text(), "Rights of the operator"))

    def pairs(chosen):
        return {(row[0].strip("`"), verb) for row in chosen for verb in row[1].split(", ")}
    return pairs(rows), pairs([row for row in rows if "own namespace" in row[2]])


def rights_of(kubectl, account, namespace):
    """{(resource, verb)} of what `kubectl auth can-i --list` shows, without API groups and addresses."""
    found = set()
    for line in kubectl("auth", "can-i", "--list", "--namespace", namespace, f"--as={account}").splitlines()[1:]:
        if line.startswith(" "):
            continue  # an address, as /healthz
        group_and_name, _, part = line.split()[0].partition("/")
        resource = group_and_name.partition(".")[0] + ("/" + part if part else "")
        verbs = line[line.rindex("[") + 1:line.rindex("]")].split()
        found |= {(resource, verb) for verb in verbs}
    return found


def expect_as_documented(kubectl, namespace, account):
    """In its own namespace and in another one. What an account without any grant may do is what everybody may."""
    everything, in_its_own = documented()
    for place, wanted in ((namespace, everything), ("default", everything - in_its_own)):
        everybodys = rights_of(kubectl, f"system:serviceaccount:{namespace}:nobody", place)
        has = rights_of(kubectl, f"system:serviceaccount:{namespace}:{account}", place)
        equal(sorted(has - everybodys), sorted(wanted), f"the operator's rights in {place}")
