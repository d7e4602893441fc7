"""API keys: who may read, write, or administer.

A file has one key on each line: a name, its scopes, and the key, or its SHA-256 as sha256:<64 hex digits>:

    shop    read,write  9f2c61d0a5...
    ops     admin       sha256:2c26b46b68ffc68ff99b453c1d3041340...

`read` asks for lists, `write` stores and forgets events, `admin` may do all and take in new models. The server keeps only
digests, compares all of them in constant time, and never logs a key.
"""

import hashlib
import hmac
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

from topnrank.errors import ParameterError
from topnrank.serve.problems import ProblemError

SCOPES = ("read", "write", "admin")
ENVIRONMENT = "TOPNRANK_API_KEYS"
SHORTEST = 16
_HASHED = re.compile(r"sha256:([0-9a-fA-F]{64})")


class Key(NamedTuple):
    """A key, by its digest."""

    name: str
    scopes: frozenset[str]
    digest: bytes


class Keys:
    """All keys of a server; without any, everybody may do everything."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys = list(keys)

    def __bool__(self) -> bool:
        return bool(self._keys)

    @classmethod
    def read(cls, path: str | None) -> Self:
        """From a file, else from TOPNRANK_API_KEYS, whose lines may be separated by semicolons."""
        if path is not None:
            try:
                text = Path(path).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ParameterError(f"{path}: the keys cannot be read ({error}); check the file") from None
            keys = list(_parsed(text.splitlines(), path))
            if not keys:
                raise ParameterError(f"{path}: holds no key; write lines of name, scopes and key")
            return cls(keys)
        return cls(_parsed(os.environ.get(ENVIRONMENT, "").replace(";", "\n").splitlines(), ENVIRONMENT))

    def require(self, scope: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """ProblemError 401 without a valid key, 403 for one that may not do this."""
        if not self._keys:
            return
        given = _given(headers)
        if given is None:
            raise _unknown("this server needs a key; send it as Authorization: Bearer KEY, or as X-API-Key")
        digest = hashlib.sha256(given).digest()
        found: Key | None = None
        for key in self._keys:  # all of them, so that time tells nothing
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None:
            raise _unknown("the server does not know this key; check it")
        if scope not in found.scopes and "admin" not in found.scopes:
            raise ProblemError(
                403, f"this key may {' and '.join(sorted(found.scopes))}; what was asked for needs the scope {scope}"
            )


def _unknown(detail: str) -> ProblemError:
    return ProblemError(401, detail, {"www-authenticate": "Bearer"})


def _given(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """The key of a request, as it was sent."""
    for name, value in headers:
        if name == b"x-api-key":
            return value.strip()
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip()
    return None


def _parsed(lines: Iterable[str], where: str) -> Iterable[Key]:
    """Errors name the line, and never the key."""
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fields = line.split()
        if len(fields) != 3:
            raise ParameterError(f"{where}, line {number}: needs a name, scopes and a key, got {len(fields)} words")
        name, scopes, key = fields
        wrong = set(scopes.split(",")) - set(SCOPES)
        if wrong:
            raise ParameterError(f"{where}, line {number}: the scopes are {', '.join(SCOPES)}, got {scopes!r}")
        hashed = _HASHED.fullmatch(key)
        if not hashed and len(key) < SHORTEST:
            raise ParameterError(f"{where}, line {number}: a key has at least {SHORTEST} letters; make it longer")
        digest = bytes.fromhex(hashed[1]) if hashed else hashlib.sha256(key.encode()).digest()
        yield Key(name, frozenset(scopes.split(",")), digest)
