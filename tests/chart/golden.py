"""Golden renderings: tests/golden/chart/NAME.values.yaml and what the chart makes of it, NAME.yaml beside it. What has a
source of its own, the resource definition and the dashboard, is left out of them. TJ_UPDATE_GOLDEN=1 writes them anew."""
import difflib
import os
import re

from rendering import ROOT, equal, expect, helm, test

FOLDER = ROOT / "tests/golden/chart"
SETS = ("default", "namespaced", "one-namespace", "monitoring", "shared-cluster", "bare", "page")


def shortened(text):
    """Without lines that hold a version, and without what tools/render and the dashboard's own test look after."""
    text = re.sub(r"^ *(app\.kubernetes\.io/version|helm\.sh/chart): .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"(image: \S+:)[0-9.]+", r"\1VERSION", text)
    text = re.sub(r"(?<=\n  name: trainingjobs\.kubebrain\.io\n).*?(?=\n---\n)", "# ... as manifests/crd/trainingjobs.yaml", text,
                  flags=re.DOTALL)
    return re.sub(r"(?<=  trainingjob-operator\.json: \|\n).*?(?=\n---\n)", "    # ... as files/dashboard.json", text, flags=re.DOTALL)


@test
def golden_renderings_are_what_the_chart_renders():
    equal(sorted(path.name.removesuffix(".values.yaml") for path in FOLDER.glob("*.values.yaml")), sorted(SETS), "the sets of values")
    for name in SETS:
        rendered = helm(arguments=("-f", FOLDER / f"{name}.values.yaml"))
        expect(rendered.returncode == 0, rendered.stderr)
        text = shortened(rendered.stdout)
        golden = FOLDER / f"{name}.yaml"
        if os.environ.get("TJ_UPDATE_GOLDEN"):
            golden.write_text(text)
        wanted = golden.read_text()
        difference = difflib.unified_diff(wanted.splitlines(), text.splitlines(), golden.name, f"what {name}.values.yaml renders", lineterm="")
        expect(text == wanted, "\n".join(difference))
