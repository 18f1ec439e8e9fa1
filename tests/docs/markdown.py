"""Reads what the tests need from a Markdown file: fenced blocks, and the first column of tables."""
import dataclasses
import re


@dataclasses.dataclass
class Fence:
    line: int
    info: str  # "console run", "yaml", ...
    text: str


def fences(text):
    found = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [Fence(text.count("\n", 0, match.start()) + 1, match.group(1).strip(), match.group(2))
            for match in found.finditer(text)]


def section(text, heading):
    """The text below the heading, up to the next one of any level."""
    pattern = re.compile(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
    match = pattern.search(re.sub(r"^```.*?^```$", lambda fence: fence.group().replace("\n#", "\n "), text,
                                  flags=re.MULTILINE | re.DOTALL))
    if match is None:
        raise AssertionError(f"no heading {heading!r}")
    return match.group(1)


def rows(text):
    """Cells of every table row, headings and rules left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    result = []
    for at, line in enumerate(lines):
        is_rule = re.fullmatch(r"[|\s:-]+", line)
        before_rule = at + 1 < len(lines) and re.fullmatch(r"[|\s:-]+", lines[at + 1])
        if not is_rule and not before_rule:
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            result.append([cell.strip().replace("\\|", "|") for cell in cells])
    return result


def code_words(cells):
    """What stands in backquotes."""
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def first_column(text):
    return [code_words(row[:1])[0] for row in rows(text) if code_words(row[:1])]
