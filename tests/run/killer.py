"""Runs a command in a child process, again and again, and kills it with SIGKILL at random moments until it may end.

python killer.py SEED KILLS LONGEST ARGUMENTS...: prints how many kills hit, and the last exit status. The kills come
within LONGEST seconds; a third as many more within three times as long, when the run is at its report. Forking spares
each child the imports.
"""

import os
import random
import signal
import sys
import time

import streamlasso.run.command  # noqa: F401 (before the fork)
from streamlasso.cli import main


def attempt(arguments, seconds):
    """The exit status, or None if it was killed first."""
    child = os.fork()
    if child == 0:
        os._exit(main(arguments))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


if __name__ == "__main__":
    draw, kills, longest = random.Random(int(sys.argv[1])), int(sys.argv[2]), float(sys.argv[3])
    moments = [draw.uniform(0, longest) for _ in range(kills)] + [
        draw.uniform(0, 3 * longest) for _ in range(kills // 3)
    ]
    hits = sum(attempt(sys.argv[4:], moment) is None for moment in moments)
    print(hits, attempt(sys.argv[4:], 600))
