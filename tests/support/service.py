"""A real service in a process of its own, on this machine, and requests to it."""

import http.client
import json
import os
import re
import signal
import time
from functools import cache

from support.forge import Forge

SLOW = 60


@cache
def forge():
    return Forge()


class Forked:
    """A service that the forge has started, as a process of `subprocess` is used."""

    def __init__(self, arguments, log):
        self.returncode = None
        self.pid = forge().ask("start", arguments, str(log))

    def poll(self):
        if self.returncode is None:
            self.returncode = forge().ask("poll", self.pid)
        return self.returncode

    def wait(self):
        if self.returncode is None:
            self.returncode = forge().ask("wait", self.pid)
        return self.returncode


class Service:
    """`streamlasso serve` on a free port. `options` are those of the command."""

    def __init__(self, store, *options, token=None):
        self.store, self.options, self.token = store, options, token
        self.start()

    def start(self):
        log = self.store.with_suffix(".log")
        log.touch()
        size = log.stat().st_size
        # A service that starts again has the same address.
        port = ("--port", str(getattr(self, "port", 0)))
        self.process = Forked(["serve", "--store", str(self.store), *port, *self.options], log)
        deadline = time.monotonic() + SLOW
        while time.monotonic() < deadline:
            found = re.search(rb"running on http://[^:]+:(\d+)", self.printed()[size:])
            if found:
                self.port = int(found[1])
                return
            if self.process.poll() is not None:
                raise RuntimeError(self.printed()[size:].decode())
            time.sleep(0.02)
        raise TimeoutError

    def printed(self):
        return self.store.with_suffix(".log").read_bytes()

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        return self.process.wait()

    def request(self, method, path, body=None, headers=(), raw=None):
        """Status and body, which is JSON if it can be."""
        status, _, found = self.whole(method, path, body, headers, raw)
        return status, found

    def whole(self, method, path, body=None, headers=(), raw=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SLOW)
        sent = dict(headers)
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            raw = json.dumps(body).encode()
        if raw is not None:
            sent.setdefault("Content-Type", "application/json")
        connection.request(method, path, raw, sent)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        kind = answer.headers.get("Content-Type", "")
        return answer.status, answer.headers, json.loads(data) if "json" in kind and "ndjson" not in kind else data

    def learn(self, name, row, y, **more):
        return self.request("POST", f"/models/{name}/learn", {"row": row, "y": y, **more})

    def predict(self, name, row, **more):
        return self.request("POST", f"/models/{name}/predict", {"row": row, **more})
