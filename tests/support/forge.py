"""A process that has imported the service, and forks: each fork is a service that starts in a moment.

Commands are lines of JSON on standard input, answers lines on standard output.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from pathlib import Path


def main():
    import uvicorn.protocols.http.httptools_impl  # noqa: F401

    import streamlasso.serve.http.app
    import streamlasso.serve.server  # noqa: F401
    from streamlasso.cli import main as command

    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        what, *given = json.loads(line)
        if what == "start":
            print(json.dumps(_started(command, *given)), flush=True)
        else:
            pid, status = os.waitpid(given[0], os.WNOHANG if what == "poll" else 0)
            print(json.dumps(os.waitstatus_to_exitcode(status) if pid else None), flush=True)


def _started(command, arguments, log):
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out = os.open(log, os.O_WRONLY | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(out, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    status = 70
    try:
        status = command(arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class Forge:
    """The process, from outside."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._answer() == "ready"
        atexit.register(self.process.kill)

    def ask(self, *command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self):
        return json.loads(self.process.stdout.readline())


if __name__ == "__main__":
    main()
