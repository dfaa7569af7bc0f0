from __future__ import annotations

import time

from opencse.foundation import replies
from opencse.foundation.replies import Reply, ReplyCache


def test_a_reply_is_found_by_its_request(tmp_path) -> None:
    cache = ReplyCache(tmp_path / "replies.sqlite")
    request = {"model": "m", "messages": [{"content": "a"}]}
    assert cache.get(request) is None
    cache.put(request, Reply(text="b", tokens=3))
    again = ReplyCache(tmp_path / "replies.sqlite")
    assert again.get(dict(reversed(request.items()))) == Reply(text="b", tokens=3)
    assert again.get({**request, "model": "other"}) is None


def test_no_more_requests_start_in_a_minute_than_may(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(replies, "_MINUTE", 0.3)
    caches = [ReplyCache(tmp_path / "replies.sqlite") for _ in range(2)]
    began = time.monotonic()
    for turn in range(5):  # as two processes would
        caches[turn % 2].wait_for_turn("server", per_minute=2)
    assert time.monotonic() - began >= 0.55
    caches[0].wait_for_turn("another server", per_minute=1)
