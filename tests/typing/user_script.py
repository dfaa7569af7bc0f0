"""A user's script, read by mypy alone (`make types`): the public functions have signatures that it can check."""

from __future__ import annotations

from typing import assert_type

import opencse

result = opencse.run("simcse", "demo", out="out", seed=1)
assert_type(result.before["sts"].average, float | None)
opencse.run("simcse", "demo", out="out", progres=True)  # type: ignore[call-arg]  # mypy reports an ignore that is unused
opencse.train("simcse", "demo", out="out")  # type: ignore[call-arg]
assert_type(opencse.probe("minilm").report is None, bool)
