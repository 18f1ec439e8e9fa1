"""The table: its rows are data, here is how they are printed."""
import dataclasses

WHAT_COLUMNS = 47
HEADING = f"{'':<6}{'part':<10}{'what':<{WHAT_COLUMNS}} result"
KERNEL_NAME_MAX = 110


@dataclasses.dataclass
class Row:
    verdict: str  # "ok", "FAIL", "SKIP"
    part: str
    what: str
    result: str
    values: dict = dataclasses.field(default_factory=dict)  # the numbers of the result, for results.json
    seconds: float = 0.0

    def line(self):
        return f"{self.verdict:<6}{self.part:<10}{self.what:<{WHAT_COLUMNS}} {self.result}"

    def as_dict(self):
        return dataclasses.asdict(self)


def judged(part, what, is_good, result, **values):
    return Row("ok" if is_good else "FAIL", part, what, result, values)


def failed(part, what, why):
    return Row("FAIL", part, what, " ".join(str(why).split()))


def needs_gpu(part, what):
    return Row("SKIP", part, what, "needs a GPU")


def kernel_lines(kernels):
    """Of [{name, calls, ms, share}]."""
    lines = [f"{'share':>7}{'ms':>10}{'calls':>8}  kernel"]
    for each in kernels:
        name = each["name"] if len(each["name"]) <= KERNEL_NAME_MAX else each["name"][:KERNEL_NAME_MAX - 3] + "..."
        lines.append(f"{each['share']:>7.1%}{each['ms']:>10.2f}{each['calls']:>8}  {name}")
    return lines


def closing_line(rows):
    count = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("ok", "FAIL", "SKIP")}
    return f"{count['ok']} passed, {count['FAIL']} failed, {count['SKIP']} skipped"
