"""Who may do what: bearer tokens with rights, and sessions of the page."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from pathlib import Path

#: Each right includes those before it.
RIGHTS = ("read", "learn", "admin")
#: Characters of a token at least, and seconds that a session of the page lasts.
SHORTEST, SESSION_SECONDS = 16, 12 * 3600
COOKIE = "streamlasso"


class Tokens:
    """Hashes of tokens, each with a name and a right; no token is kept.

    >>> tokens = Tokens({hashed("a-secret-of-mine"): ("page", "read")}, b"key")
    >>> tokens.right("a-secret-of-mine"), tokens.right("another")
    ('read', None)
    >>> tokens.right_of_session(tokens.session("a-secret-of-mine"))
    'read'
    """

    def __init__(self, known: dict[str, tuple[str, str]], secret: bytes) -> None:
        self.known, self.secret = known, secret

    def __len__(self) -> int:
        return len(self.known)

    def right(self, token: str) -> str | None:
        """SHA-256 of a long random token is safe to look up: nobody can choose hashes that are near."""
        found = self.known.get(hashed(token))
        return None if found is None else found[1]

    def session(self, token: str) -> str:
        """For a cookie: which token, until when, and a signature."""
        text = f"{hashed(token)[:32]}.{int(time.time()) + SESSION_SECONDS}"
        return f"{text}.{self._signature(text)}"

    def right_of_session(self, session: str) -> str | None:
        text, _, signature = session.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(text).encode()):
            return None
        start, _, until = text.partition(".")
        if int(until) < time.time():
            return None
        return next((right for hash, (_, right) in self.known.items() if hash.startswith(start)), None)

    def _signature(self, text: str) -> str:
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()


def hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def new_token() -> str:
    return secrets.token_urlsafe(32)


def tokens_in(path: Path) -> dict[str, tuple[str, str]]:
    """The tokens of a file: a line `right token`, or `right sha256:HASH`, with a name behind it if you like."""
    found = {}
    if path.stat().st_mode & 0o077:
        raise ValueError(f"{path} can be read by others than its owner: use chmod 600 {path}")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) not in (2, 3) or words[0] not in RIGHTS:
            raise ValueError(
                f"{path}, line {number}: use a right ({', '.join(RIGHTS)}), a token, and a name if you like"
            )
        right, token = words[:2]
        if token.startswith("sha256:"):
            hash = token.removeprefix("sha256:").lower()
            if len(hash) != 64 or set(hash) - set("0123456789abcdef"):
                raise ValueError(f"{path}, line {number}: a hash has 64 hexadecimal digits")
        else:
            if len(token) < SHORTEST:
                raise ValueError(
                    f"{path}, line {number}: the token has fewer than {SHORTEST} characters: use a longer one"
                )
            hash = hashed(token)
        found[hash] = (words[2] if len(words) == 3 else f"line {number}", right)
    if not found:
        raise ValueError(f"{path} holds no token: write a line such as 'admin {new_token()}'")
    return found


def allows(right: str | None, needed: str) -> bool:
    """Whether a right includes another.

    >>> allows("admin", "learn"), allows("read", "learn"), allows(None, "read")
    (True, False, False)
    """
    return right is not None and RIGHTS.index(right) >= RIGHTS.index(needed)
