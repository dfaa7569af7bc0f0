"""Replies of a language model, kept for good, and the times of requests, shared by all processes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencse.foundation.cache import cache_root

_MINUTE = 60.0
# Seconds for which a process waits while another one writes.
_PATIENCE = 60.0


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A reply of a language model.

    Attributes:
        text: The reply.
        tokens: Tokens of the request and of the reply, as the server counted them; 0 if it did not.
    """

    text: str
    tokens: int


class ReplyCache:
    """Replies by request, in one SQLite file in the cache.

    Replies cost money, so they are kept until the file `replies/replies.sqlite` is deleted by hand:
    neither the size limit of the cache nor `opencse cache --clear` removes them.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or cache_root() / "replies" / "replies.sqlite"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, text TEXT, tokens INTEGER)"
            )
            connection.execute("CREATE TABLE IF NOT EXISTS starts (server TEXT, time REAL)")

    def get(self, request: Mapping[str, Any]) -> Reply | None:
        """Return the reply to a request that was made before, or None."""
        with self._connected() as connection:
            query = "SELECT text, tokens FROM replies WHERE key = ?"
            found = connection.execute(query, (request_key(request),)).fetchone()
        return None if found is None else Reply(text=found[0], tokens=found[1])

    def put(self, request: Mapping[str, Any], reply: Reply) -> None:
        """Keep the reply to a request."""
        row = (request_key(request), reply.text, reply.tokens)
        with self._connected() as connection:
            connection.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", row)

    def wait_for_turn(self, server: str, per_minute: int) -> None:
        """Wait until a request may start: no more than `per_minute` of all processes start in a minute."""
        seconds = self._seconds_to_wait(server, per_minute)
        while seconds > 0:
            time.sleep(seconds)
            seconds = self._seconds_to_wait(server, per_minute)

    def _seconds_to_wait(self, server: str, per_minute: int) -> float:
        """Return how long to wait; if not at all, count the request as started."""
        now = time.time()
        with self._connected() as connection:
            # The lock is taken before the count, so that two processes cannot take the same turn.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM starts WHERE time < ?", (now - _MINUTE,))
            query = "SELECT COUNT(*), MIN(time) FROM starts WHERE server = ?"
            count, earliest = connection.execute(query, (server,)).fetchone()
            if count < per_minute:
                connection.execute("INSERT INTO starts VALUES (?, ?)", (server, now))
                return 0.0
        return max(0.01, earliest + _MINUTE - now)

    def _connected(self) -> _Connection:
        return _Connection(self._path)


class _Connection:
    """A connection that commits, or rolls back on an error, and closes."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=_PATIENCE)

    def __enter__(self) -> sqlite3.Connection:
        return self._connection

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._connection.commit()
        self._connection.close()


def request_key(request: Mapping[str, Any]) -> str:
    """Return a hash of a request, which does not depend on the order of its fields."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
