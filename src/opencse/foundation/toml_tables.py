"""Parsing, merging and writing of TOML tables, and the `key=value` overrides of the command line."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Mapping
from textwrap import indent
from typing import Any

from opencse.foundation.decode import unknown_name_error
from opencse.foundation.errors import OpencseError

Table = dict[str, Any]
DEEPEST = 32
"""Maximum depth of nested tables and lists."""
LARGEST = 2**63 - 1
"""Largest integer of the TOML standard."""


def parse_toml(text: str, label: str) -> Table:
    """Parse a TOML document; `label` names it in messages.

    Raises:
        OpencseError: The text is not TOML, is nested deeper than `DEEPEST`, or has an integer of more than 64 bits.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OpencseError(f"{label}: not valid TOML ({error})") from None
    except RecursionError:
        raise OpencseError(f"{label}: nested deeper than {DEEPEST} levels", "Flatten it.") from None
    except ValueError as error:  # such as a number of more than 4,300 digits
        raise OpencseError(f"{label}: a value cannot be read ({error})", "Correct the value.") from None
    _check_size(table, label)
    return table


def _check_size(table: Table, label: str) -> None:
    values: list[tuple[Any, int]] = [(table, 0)]
    while values:
        value, depth = values.pop()
        if isinstance(value, dict | list):
            if depth >= DEEPEST:
                raise OpencseError(f"{label}: nested deeper than {DEEPEST} levels", "Flatten it.")
            values += ((inner, depth + 1) for inner in (value.values() if isinstance(value, dict) else value))
        elif isinstance(value, int) and abs(value) > LARGEST:
            raise OpencseError(f"{label}: an integer is larger than 64 bits", "Correct the value.")


def merge_tables(base: Table, over: Mapping[str, Any], where: str) -> Table:
    """Return a table with the values of another laid over it, key by key.

    Lists are replaced, with two exceptions: `{ add = [...] }` adds to a list, and a table under the key `terms` changes
    terms of the list by name or position, or adds new ones. A term whose kind is changed keeps its name.

    Args:
        base: The table below.
        over: The table above, whose values win.
        where: Name of the file, for messages.

    Raises:
        OpencseError: A term to change does not exist.
    """
    merged = copy.deepcopy(base)
    for key, value in over.items():
        known = merged.get(key)
        if isinstance(known, list) and isinstance(value, Mapping) and isinstance(value.get("add"), list):
            merged[key] = [*known, *copy.deepcopy(value["add"])]
        elif key == "terms" and isinstance(value, Mapping) and isinstance(known, list):
            merged[key] = _patch_terms(known, value, where)
        elif isinstance(known, dict) and isinstance(value, Mapping) and not _changes_kind(known, value):
            merged[key] = merge_tables(known, value, where)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _changes_kind(known: Table, over: Mapping[str, Any]) -> bool:
    """Return whether one constructor replaces another of a different kind, whose parameters it does not inherit."""
    return "kind" in over and over["kind"] != known.get("kind")


def _patch_terms(terms: list[Table], patches: Mapping[str, Any], where: str) -> list[Table]:
    names = [t.get("name", t.get("kind")) if isinstance(t, Mapping) else None for t in terms]
    patched = copy.deepcopy(terms)
    for name, patch in patches.items():
        if not isinstance(patch, Mapping):
            raise OpencseError(f"{where}: terms.{name}: expected a table, found {patch!r}")
        key: str | int = int(name) if name.isdecimal() and len(name) < 5 else name
        index = key if isinstance(key, int) else names.index(key) if key in names else None
        if index is None and "kind" in patch:
            patched.append({"name": name, **patch})
            continue
        if index is None or index >= len(terms):
            raise unknown_name_error("term", name, [str(n) for n in names], f"{where}: terms")
        if not isinstance(patched[index], Mapping):
            raise OpencseError(f"{where}: terms[{index}]: expected a table")
        kept_name = {"name": names[index]} if "kind" in patch else {}
        patched[index] = merge_tables(kept_name | patched[index], patch, where)
    return patched


def parse_override(text: str) -> tuple[str, Any]:
    """Return the dotted key and the value of a `--set`; a value that is not TOML is a string.

    Raises:
        OpencseError: The text is not `key=value`, or the value is nested too deep or too large.
    """
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key.strip()):
        raise OpencseError(f"--set {text}: expected key=value", "For example --set optimizer.lr=1e-5.")
    if key.count(".") >= DEEPEST:
        raise OpencseError(f"--set {text}: nested deeper than {DEEPEST} levels")
    try:
        tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()  # a bare word is a string
    except (RecursionError, ValueError):
        pass  # parse_toml raises it again, as one line
    return key.strip(), parse_toml(f"value = {value}", f"--set {text}")["value"]


def nested_table(key: str, value: Any) -> Table:
    """Return the nested table in which a dotted key has this value: `a.b` is `{"a": {"b": value}}`."""
    *parents, last = key.split(".")
    table: Table = {last: value}
    for parent in reversed(parents):
        table = {parent: table}
    return table


def format_toml(table: Mapping[str, Any], name: str = "") -> str:
    """Return a table of texts, numbers, booleans, lists and tables as TOML; `name` is its own dotted key."""
    lines, blocks = "", []
    for key, value in table.items():
        key = key if re.fullmatch(r"[\w-]+", key, re.ASCII) else _literal(key)
        path = f"{name}.{key}" if name else key
        if isinstance(value, Mapping):
            text = format_toml(value, path)
            blocks.append(text if text.startswith("[") else f"[{path}]\n{text}")
        elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
            blocks += [f"[[{path}]]\n{format_toml(each, path)}" for each in value]
        else:
            lines += f"{key} = {_literal(value)}\n"
    return "\n".join([*([lines] if lines else []), *blocks])


def _literal(value: object) -> str:
    if isinstance(value, list):
        items = "".join(f"{_literal(each)},\n" for each in value)
        return "[\n" + indent(items, "    ") + "]" if value else "[]"
    if isinstance(value, bool | str):  # JSON's, but for U+007F
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)
