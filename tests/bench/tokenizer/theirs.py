"""One run of Hugging Face's tokenizers: python theirs.py encode_batch|encode_batch_fast TEXT TOKENIZER.json OUT. Reads the
text, encodes it piece by piece, writes the ids as uint16, and prints seconds and the number of ids.
"""
import sys
import time

import numpy
from tokenizers import Tokenizer

PIECE_CHARACTERS = 64_000
PIECES_AT_A_TIME = 512


def pieces_of(file):
    """Cut before the end of a line that shows: no word of GPT-2's lies across."""
    rest = ""
    while block := file.read(PIECE_CHARACTERS):
        rest += block
        at = rest.rfind("\n")
        while at > 0 and rest[at - 1].isspace():
            at = rest.rfind("\n", 0, at)
        if at > 0:
            yield rest[:at]
            rest = rest[at:]
    yield rest


def batches_of(file):
    batch = []
    for piece in pieces_of(file):
        batch.append(piece)
        if len(batch) == PIECES_AT_A_TIME:
            yield batch
            batch = []
    if batch:
        yield batch


def main():
    how, text, vocabulary, out = sys.argv[1:]
    begun = time.monotonic()
    encode = getattr(Tokenizer.from_file(vocabulary), how)
    count = 0
    with open(text, encoding="utf-8", errors="replace", newline="") as file, open(out, "wb") as ids:
        for batch in batches_of(file):
            for encoded in encode(batch, add_special_tokens=False):
                numbers = numpy.array(encoded.ids, dtype=numpy.uint16)
                ids.write(numbers.tobytes())
                count += len(numbers)
    print(time.monotonic() - begun, count)


if __name__ == "__main__":
    main()
