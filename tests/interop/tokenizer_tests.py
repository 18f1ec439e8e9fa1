"""Our tokenizer beside Hugging Face's tokenizers: what both learn of one text, and the ids that both give. Part of
tests/interop/run.
"""
import json
import pathlib
import random
import struct
import subprocess

from tokenizers import Tokenizer

import make_tokenizer
import unicode_classes

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINER = ROOT / "build/dev/trainer/trainer"
SECONDS_MAX = 120
SEED = 20261125
TOK_HEADER_BYTES, TOK_WIDTH_AT, TOK_COUNT_AT = 128, 12, 24


def trainer(*words):
    done = subprocess.run([str(word) for word in (TRAINER, *words)], text=True, timeout=SECONDS_MAX, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def tokens_in(folder):
    """All tokens of a prepared folder, in order."""
    tokens = []
    for shard in json.loads((folder / "manifest.json").read_text())["train"]["shards"]:
        content = (folder / shard["file"]).read_bytes()
        width, count = struct.unpack_from("<I", content, TOK_WIDTH_AT)[0], struct.unpack_from("<q", content, TOK_COUNT_AT)[0]
        kind = {1: "B", 2: "H", 4: "I"}[width]
        tokens += struct.unpack_from(f"<{count}{kind}", content, TOK_HEADER_BYTES)
    return tokens


def chinese(dice, sentences):
    """Sentences of words that come again as words of a language do: the n-th has a share of about 1 / n."""
    characters = [chr(code) for code in dice.sample(range(0x4E00, 0x9FA5), 6000)]
    words = ["".join(characters[min(int(dice.paretovariate(0.6)) - 1, 5999)] for _ in range(dice.choice((1, 2, 2, 2, 3, 4))))
             for _ in range(40_000)]
    for _ in range(sentences):
        clause = "".join(words[min(int(dice.paretovariate(0.7)) - 1, 39_999)] for _ in range(dice.randrange(2, 14)))
        yield clause + dice.choice(",。!?;、:\n")


def fuzz_texts(dice, count):
    """Random Unicode, whatever stands beside what: runs, contractions, digits, emoji, characters of no script."""
    pieces = [" ", "  ", "\n", "\r\n", "\t", "'s", "'ll", "'", "don't", "word", "Word", "2026", "½", "。", ",", "人工", "智能", "한국", "👩‍👧", "🇨🇳",
              "\u0301", "\u00a0", "\u3000", "\u2028", "\u0085", "\ufffd", "\x00", "---", "==", "...", "\u180e", "\u200b"]
    spans = [(0, 0x80), (0x80, 0x800), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF), (0x20000, 0x323AF), (0, 0x10FFFF)]
    for _ in range(count):
        text = ""
        for _ in range(dice.randrange(1, 40)):
            if dice.random() < 0.6:
                text += dice.choice(pieces) * dice.choice((1, 1, 1, 2, 7))
            else:
                code = dice.randint(*dice.choice(spans))
                text += "" if 0xD800 <= code < 0xE000 else chr(code)
        yield text or "x"


def test_the_tokenizer_of_the_tests_is_theirs(_folder):
    for name, text in zip(("tokenizer.json", "cases.json"), make_tokenizer.golden(), strict=True):
        kept = (make_tokenizer.FOLDER / name).read_text(encoding="utf-8")
        assert kept == text, f"{name} is not what make_tokenizer.py writes"


def test_letters_and_numbers_are_theirs(_folder):
    classes = unicode_classes.ours()
    others = set(unicode_classes.ALL).difference(*classes.values())
    for name, codes in {**classes, "Others": others}.items():
        assert len(codes) > 20, name
        assert unicode_classes.piece_count(codes) == 1, f"{name}: tokenizers see more than one kind of characters in them"


def test_we_learn_what_they_learn(folder):
    dice = random.Random(SEED)
    english = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "manifests/examples/text").glob("*-[ae].txt")))
    runs = "".join(dice.choice(" -=a") * dice.randrange(1, 30) + dice.choice("\nx") for _ in range(4000))
    letters = " ".join("".join(dice.choices("abc", k=dice.randrange(1, 14))) for _ in range(4000))
    texts = {"english": (english, 2000, 2), "chinese": ("".join(chinese(dice, 20_000)), 6000, 2), "runs": (runs, 400, 2),
             "letters": (letters, 2000, 1), "unicode": ("".join(fuzz_texts(dice, 2000)), 900, 3)}
    for name, (text, vocabulary, min_frequency) in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="")
        ours = folder / f"{name}.json"
        trainer("prepare", "tokenizer", "--input", folder / f"{name}.txt", "--vocabulary-size", vocabulary, "--output", ours,
                "--min-frequency", min_frequency)
        theirs = make_tokenizer.trained([text], vocabulary, min_frequency).to_str(pretty=True)
        assert ours.read_text(encoding="utf-8") == theirs, f"{name}: another tokenizer.json"
        print(f"      {name}: {len(json.loads(theirs)['model']['merges'])} merges alike")


def test_our_ids_are_theirs_and_become_the_text_again(folder):
    dice = random.Random(SEED)
    (folder / "learn.txt").write_text("".join(chinese(dice, 120_000)), encoding="utf-8")
    made = trainer("prepare", "tokenizer", "--input", folder / "learn.txt", "--vocabulary-size", 21128, "--output",
                   folder / "tokenizer.json")
    assert "21,128 tokens" in made, made
    texts = [*fuzz_texts(dice, 3000), "".join(chinese(dice, 3000))]
    with open(folder / "texts.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    trainer("prepare", "--input", folder / "texts.jsonl", "--output", folder / "tokens", "--tokenizer", "bpe", "--vocabulary",
            folder / "tokenizer.json")
    theirs = Tokenizer.from_file(str(folder / "tokens/tokenizer.json"))
    documents, ours = [[]], tokens_in(folder / "tokens")
    for token in ours:
        if token == 0:
            documents.append([])
        else:
            documents[-1].append(token)
    assert documents.pop() == [] and len(documents) == len(texts), (len(documents), len(texts))
    for text, ids, encoded in zip(texts, documents, theirs.encode_batch(texts), strict=True):
        assert ids == encoded.ids, (text, ids, encoded.ids)
        assert theirs.decode(ids, skip_special_tokens=False) == text, (text, ids)
    print(f"      {len(ours)} ids of {len(texts)} documents alike")


def test_invalid_utf8_is_what_they_see(folder):
    dice = random.Random(SEED)
    (folder / "text").mkdir()
    texts = []
    for number in range(200):
        content = bytearray("".join(fuzz_texts(dice, 1)).encode())
        for _ in range(dice.randrange(1, 6)):
            content[dice.randrange(len(content))] = dice.randrange(256)
        (folder / f"text/{number:03}.txt").write_bytes(b"#" + bytes(content))  # nothing that looks like a compressed file
        texts.append((b"#" + bytes(content)).decode(errors="replace"))
    vocabulary = make_tokenizer.FOLDER / "tokenizer.json"
    trainer("prepare", "--input", folder / "text", "--output", folder / "tokens", "--tokenizer", "bpe", "--vocabulary", vocabulary)
    expected = [token for encoded in Tokenizer.from_file(str(vocabulary)).encode_batch(texts) for token in [*encoded.ids, 0]]
    assert tokens_in(folder / "tokens") == expected
