"""What must hold, at once or within a time."""
import time

POLL_SECONDS = 0.05


class Failure(AssertionError):
    """What was seen in place of what must hold."""


def expect(holds, what):
    """`what` may be a function: it is asked only of a failure."""
    if not holds:
        raise Failure(what() if callable(what) else what)


def equal(seen, wanted, what):
    expect(seen == wanted, f"{what}: wanted {wanted!r}, got {seen!r}")


def until(seconds, what, condition, poll_seconds=POLL_SECONDS):
    """Waits for the condition to give something true, and gives that back. `what` may say at the end what is there."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        expect(time.monotonic() < deadline, lambda: f"waited {seconds} s for {what() if callable(what) else what}")
        time.sleep(poll_seconds)
