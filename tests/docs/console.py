"""Runs a console block: each `$ command`, and compares what it printed with the lines below it.

A line `...` stands for any number of lines, `...` within a line for anything. Output and errors count together.
"""
import re
import shlex
import subprocess

SECONDS_MAX = 600


def is_whole(command):
    try:
        shlex.split(command, comments=True)
    except ValueError:  # a quote is open, or the last character is a backslash
        return False
    return True


def steps(text):
    """(command, expected lines) of each step. A command goes on in the next line where a shell would ask for more: behind `\\`, and within
    quotes."""
    result = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while not is_whole(command):
                command += "\n" + next(lines)
            result.append((command, []))
        elif result:
            result[-1][1].append(line)
    return result


def pattern(expected):
    parts = []
    for line in expected:
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(r"[^\n]*?".join(re.escape(piece.rstrip()) for piece in line.split("...")) + r"[ \t]*\n")
    return re.compile("".join(parts))


def matches(expected, output):
    if output and not output.endswith("\n"):
        output += "\n"
    return pattern(expected).fullmatch(output) is not None


def missing(expected, output):
    """The expected lines that no line of the output matches, whatever the order: of programs that run side by side."""
    lines = [f"{line}\n" for line in output.splitlines()]
    wanted = [line for line in expected if line.strip() not in ("", "...")]
    return [line for line in wanted if not any(pattern([line]).fullmatch(printed) for printed in lines)]


def run(command, folder, env):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, timeout=SECONDS_MAX,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout
