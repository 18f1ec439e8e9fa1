"""Which characters are letters, numbers and white space to Hugging Face's tokenizers: the tables of
trainer/data/unicode_classes.cc, read from there, held against theirs, and printed anew where they have learned more.

  python unicode_classes.py    prints kLetters and kNumbers, in the Python of tools/deps python-torch
"""
import pathlib
import re

from tokenizers import pre_tokenizers

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "trainer/data/unicode_classes.cc"
ALL = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
LINE_CHARACTERS_MAX = 100


def ours():
    """{"Letters": set of code points, "Numbers": ..., "Spaces": ...}"""
    tables = re.findall(r"constexpr Range k(\w+)\[\] = \{(.*?)\};", SOURCE.read_text(encoding="utf-8"), re.DOTALL)
    return {name: {code for first, last in re.findall(r"\{(0x[0-9a-f]+), (0x[0-9a-f]+)\}", body)
                   for code in range(int(first, 16), int(last, 16) + 1)} for name, body in tables}


def piece_count(codes):
    """How many words they see in all these characters, one behind the other."""
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return len(words.pre_tokenize_str("".join(map(chr, sorted(codes)))))


def theirs():
    """By asking of each character whether it stays in a word with a letter, or with a digit: for whoever prints the tables."""
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters, numbers = set(), set()
    for code in ALL:
        begins = {begin for _, (begin, _) in words.pre_tokenize_str(f"a{chr(code)}1{chr(code)}")}
        if 1 not in begins:
            letters.add(code)
        elif 3 not in begins:
            numbers.add(code)
    return {"Letters": letters, "Numbers": numbers}


def table_of(codes):
    ranges, lines = [], [""]
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    for first, last in ranges:
        text = f"{{{first:#x}, {last:#x}}},"
        if len(lines[-1]) + 1 + len(text) > LINE_CHARACTERS_MAX - 3:
            lines.append("")
        lines[-1] += " " + text
    return "\n".join("   " + line for line in lines)


if __name__ == "__main__":
    for name, codes in theirs().items():
        print(f"constexpr Range k{name}[] = {{\n{table_of(codes)}\n}};")
