"""Why a test failed, as the closing table tells it."""

REASON_CHARS_MAX = 1000


def in_one_line(text):
    """Its begin says what was expected, its end what the program's last words were."""
    line = " ".join(text.split())
    half = REASON_CHARS_MAX // 2
    return line if len(line) <= REASON_CHARS_MAX else f"{line[:half]} ... {line[-half:]}"
