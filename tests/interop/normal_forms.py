"""The tables of trainer/data/normal_forms.inc: canonical decompositions, which pairs are never composed, and combining
classes, of those characters that Hugging Face's tokenizers decompose or move: they are of an older Unicode than ours are.

  python normal_forms.py    prints the file, in the Python of tools/deps python-torch
"""
import unicodedata

from tokenizers import normalizers

ALL = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)  # by a rule
LINE_CHARACTERS_MAX = 98


def step(code):
    """What a character is made of, one level down; (): nothing."""
    parts = unicodedata.decomposition(chr(code))
    return () if not parts or parts.startswith("<") else tuple(int(part, 16) for part in parts.split())


def decompositions():
    theirs = normalizers.NFD()
    rows = []
    for code in ALL:
        if code in HANGUL or theirs.normalize_str(chr(code)) == chr(code):
            continue
        parts = step(code)
        assert parts, f"U+{code:04X}: Python's Unicode {unicodedata.unidata_version} knows no decomposition"
        rows.append((code, parts[0], parts[1] if len(parts) > 1 else 0))
    return rows


def classes():
    """(first, last, class) of characters that are moved behind others."""
    runs, theirs = [], normalizers.NFD()
    for code in ALL:
        value = unicodedata.combining(chr(code))
        behind = f"a\u0345{chr(code)}"  # U+0345 has the greatest class of all: whatever else has one moves before it
        if value == 0 or code != 0x345 and theirs.normalize_str(behind) == behind:
            continue
        if runs and runs[-1][1] == code - 1 and runs[-1][2] == value:
            runs[-1][1] = code
        else:
            runs.append([code, code, value])
    return runs


def table(name, kind, rows):
    lines = [""]
    for row in rows:
        text = "{" + ",".join(f"{value:#x}" for value in row) + "}," if isinstance(row, (tuple, list)) else f"{row:#x},"
        if len(lines[-1]) + 1 + len(text) > LINE_CHARACTERS_MAX - 4:
            lines.append("")
        lines[-1] += ("" if not lines[-1] else " ") + text
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join("    " + line for line in lines) + "\n};\n"


def text():
    rows = decompositions()
    composed = normalizers.NFC()
    never = [code for code, _, second in rows if second and composed.normalize_str(chr(code)) != chr(code)]
    return ("// Printed by tests/interop/normal_forms.py, which asks Hugging Face's tokenizers 0.23.3.\n"
            + table("kDecompositions", "Decomposition", rows) + table("kNeverComposed", "char32_t", never)
            + table("kCombining", "CombiningRun", classes()))


if __name__ == "__main__":
    print(text(), end="")
