"""Writes tests/trainer/data/chinese/tokenizer.json and cases.json: what Hugging Face's tokenizers learn of text.txt beside
them, and the ids that they give with it. `python make_tokenizer.py` in the Python of tools/deps python-torch; a test of
tests/interop/run holds the files to it.
"""
import base64
import json
import pathlib

import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "trainer/data/chinese"
END = "<|endoftext|>"
VOCABULARY, MIN_FREQUENCY = 600, 2
CASES = [
    "分布式训练的关键是通信。", "机器学习 和 深度学习", "全角空格 和,标点!?", "𠀀𪚥𱍐𲎯 罕见字",  # extensions B, G and H of Unicode 13 and 15
    "天气\n\n  很好\r\n\t吗   ", " ", "  ", "\n", "a  b   c    d", "   leading", "trailing   ", "\u00a0\u2003 \u3000x\u200b\ufeff",
    "I'm we'll they've don't it's you'd he're 'S 'LL ''s", "x'", "'", "''", " 's", "0123456789 1,234.5 ½ Ⅷ ٣٤ 三十", "2026年11月25日",
    "👍🏽👩‍👩‍👧‍👦🇨🇳🎉 emoji", "---------=========/////////", "naïve café cafe\u0301 Straße", "한국어 안녕하세요 ไทย हिन्दी العربية",
    "def f(x):\n    return x  # 返回\n", "a\u0000b\u0007\u007f\u0080\u0085c", "\ufffd\ufffe\uffff", "混合text文本123数字mixed",
]


def trained(texts, vocabulary, min_frequency):
    """As a user of theirs trains a byte-level BPE."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, min_frequency=min_frequency, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def golden():
    """(text of tokenizer.json, text of cases.json)"""
    tokenizer = trained([(FOLDER / "text.txt").read_text(encoding="utf-8")], VOCABULARY, MIN_FREQUENCY)
    texts = [text.encode() for text in CASES]
    texts += [b"cut \xe4\xba", b"\xff\xfe\x80", b"\xed\xa0\x80 surrogate", b"\xf0\x9f\x98 \xe4\xba\xba\xf5", b"\xc0\xafok"]
    rows = [{"text_base64": base64.b64encode(text).decode(), "ids": tokenizer.encode(text.decode(errors="replace")).ids}
            for text in texts]
    head = f'{{"from": "ids of Hugging Face tokenizers {tokenizers.__version__} with tokenizer.json", "cases": [\n'
    return tokenizer.to_str(pretty=True), head + ",\n".join(" " + json.dumps(row) for row in rows) + "\n]}\n"


if __name__ == "__main__":
    for name, text in zip(("tokenizer.json", "cases.json"), golden(), strict=True):
        (FOLDER / name).write_text(text, encoding="utf-8")
