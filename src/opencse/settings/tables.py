"""Merging plain tables (TOML), and the `key=value` overrides of a command line."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from opencse.errors import OpencseError
from opencse.settings.decode import unknown

Table = dict[str, Any]


def merge(base: Table, over: Mapping[str, Any], where: str) -> Table:
    """Merge tables key by key; lists are replaced, except that a table of terms patches or adds terms by name."""
    merged = copy.deepcopy(base)
    for key, value in over.items():
        known = merged.get(key)
        if key == "terms" and isinstance(value, Mapping) and isinstance(known, list):
            merged[key] = _patch_terms(known, value, where)
        elif isinstance(known, dict) and isinstance(value, Mapping) and not _changes_kind(known, value):
            merged[key] = merge(known, value, where)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _changes_kind(known: Table, over: Mapping[str, Any]) -> bool:
    """Whether one constructor replaces another: its parameters then start afresh."""
    return "kind" in over and over["kind"] != known.get("kind")


def _patch_terms(terms: list[Table], patches: Mapping[str, Any], where: str) -> list[Table]:
    names = [t.get("name", t.get("kind")) for t in terms]
    patched = copy.deepcopy(terms)
    for name, patch in patches.items():
        key: str | int = int(name) if name.isdigit() else name
        index = key if isinstance(key, int) else names.index(key) if key in names else None
        if index is None and "kind" in patch:
            patched.append({"name": name, **patch})
            continue
        if index is None or index >= len(terms):
            raise unknown("term", name, [str(n) for n in names], f"{where}: terms")
        patched[index] = merge(patched[index], patch, where)
    return patched


def parse_override(text: str) -> tuple[str, Any]:
    """The key and the value of a `--set`."""
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key.strip()):
        raise OpencseError(f"--set {text}: expected key=value", "For example --set optimizer.lr=1e-5.")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()  # a bare word is a string


def nested(key: str, value: Any) -> Table:
    """The table in which a dotted key has this value."""
    *parents, last = key.split(".")
    table: Table = {last: value}
    for parent in reversed(parents):
        table = {parent: table}
    return table
