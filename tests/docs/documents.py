"""What the documents' tests read: documents, sources, and the flags of a help."""
import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from support.places import ROOT  # noqa: E402

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read(path):
    return (ROOT / path).read_text()


def joined_literals(text):
    """C++ source with adjacent string literals joined, as the compiler does."""
    return re.sub(r'"\s*\n\s*"', "", text)


def long_flags(help_text):
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*)", help_text)) - {"--help", "--version"}
