"""TOML tables: parsing, merging, strict decoding into frozen dataclasses, and writing.

Every mistake raises an `OpencseError` that names the file, the key and the allowed values.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import json
import math
import re
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from textwrap import indent
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from opencse.foundation.errors import OpencseError

TomlTable = dict[str, Any]


def parse_toml(text: str, label: str) -> TomlTable:
    """Parse a TOML document; `label` names it in messages.

    Raises:
        OpencseError: The text is not TOML, or is nested too deep.
    """
    try:
        table = tomllib.loads(text)
        # Dotted keys of great depth pass the parser, but everything after it would fail.
        repr(table)
        return table
    except tomllib.TOMLDecodeError as error:
        raise OpencseError(f"{label}: not valid TOML ({error})") from None
    except RecursionError:
        raise OpencseError(f"{label}: nested too deep", "Flatten it.") from None
    # Python refuses to read a number of more than 4,300 digits, for example.
    except ValueError as error:
        raise OpencseError(
            f"{label}: a value cannot be read ({error})", "Correct the value."
        ) from None


def merge_tables(base: TomlTable, over: Mapping[str, Any], where: str) -> TomlTable:
    """Return a table with the values of another laid over it, key by key.

    Lists are replaced, with two exceptions: `{ add = [...] }` adds to a list, and a table under the
    key `losses` changes losses of the list by name, or adds new ones. A loss whose kind is changed
    keeps its name.

    Args:
        base: The table below.
        over: The table above, whose values win.
        where: Name of the file, for messages.

    Raises:
        OpencseError: A loss to change does not exist.
    """
    merged = copy.deepcopy(base)
    for key, value in over.items():
        old = merged.get(key)
        if (
            isinstance(old, list)
            and isinstance(value, Mapping)
            and isinstance(value.get("add"), list)
        ):
            merged[key] = [*old, *copy.deepcopy(value["add"])]
        elif key == "losses" and isinstance(value, Mapping) and isinstance(old, list):
            merged[key] = _patch_losses(old, value, where)
        elif (
            isinstance(old, dict)
            and isinstance(value, Mapping)
            and value.get("kind") in (None, old.get("kind"))
        ):
            # Another kind does not inherit parameters.
            merged[key] = merge_tables(old, value, where)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _patch_losses(
    losses: list[TomlTable], patches: Mapping[str, Any], where: str
) -> list[TomlTable]:
    """Return a list of losses, changed by tables of settings: `[losses.NAME]` in a file, or `--set losses.NAME.KEY`.

    A table with a kind that has the name of no loss adds one.

    Raises:
        OpencseError: A table has the name of no loss, and no kind.
    """
    names = []
    for loss in losses:
        # The name of a loss is its kind unless it has one. What is no table is refused below, or later.
        is_table = isinstance(loss, Mapping)
        names.append(loss.get("name", loss.get("kind")) if is_table else None)
    patched = copy.deepcopy(losses)
    for name, patch in patches.items():
        if not isinstance(patch, Mapping):
            raise OpencseError(f"{where}: losses.{name}: expected a table, found {patch!r}")
        if name not in names and "kind" in patch:
            patched.append({"name": name, **patch})
            continue
        if name not in names:
            raise unknown_name_error("loss", name, [str(n) for n in names], f"{where}: losses")
        index = names.index(name)
        if not isinstance(patched[index], Mapping):
            raise OpencseError(f"{where}: losses[{index}]: expected a table")
        table = patched[index]
        if "kind" in patch:
            # A loss of another kind keeps the name, by which others refer to it.
            table = {"name": names[index]} | table
        patched[index] = merge_tables(table, patch, where)
    return patched


def parse_override(text: str) -> tuple[str, Any]:
    """Return the dotted key and the value of a `--set`; a value that is not TOML is a string.

    Raises:
        OpencseError: The text is not `key=value`, or the value is nested too deep.
    """
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key.strip()):
        raise OpencseError(
            f"--set {text}: expected key=value", "For example --set optimizer.lr=1e-5."
        )
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        # A bare word is a string, because quotes are lost in a shell.
        return key.strip(), value.strip()
    except (RecursionError, ValueError) as error:
        raise OpencseError(
            f"--set {key}: the value cannot be read ({error})", "Correct the value."
        ) from None


def nested_table(key: str, value: Any) -> TomlTable:
    """Return the nested table of a dotted key and its value: `a.b` gives `{"a": {"b": value}}`."""
    *parents, last = key.split(".")
    table: TomlTable = {last: value}
    for parent in reversed(parents):
        table = {parent: table}
    return table


def format_toml(table: Mapping[str, Any], name: str = "") -> str:
    """Return a table as TOML; `name` is its own dotted key."""
    lines = ""
    blocks = []
    for key, value in table.items():
        if not re.fullmatch(r"[\w-]+", key, re.ASCII):
            key = _literal(key)
        path = f"{name}.{key}" if name else key
        if isinstance(value, Mapping):
            text = format_toml(value, path)
            if not text.startswith("["):
                text = f"[{path}]\n{text}"
            blocks.append(text)
        elif _is_list_of_tables(value):
            for item in value:
                blocks.append(f"[[{path}]]\n{format_toml(item, path)}")
        else:
            lines += f"{key} = {_literal(value)}\n"
    if lines:
        blocks.insert(0, lines)
    return "\n".join(blocks)


def _is_list_of_tables(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, Mapping) for item in value)


def _literal(value: object) -> str:
    if isinstance(value, list):
        if not value:
            return "[]"
        items = "".join(f"{_literal(item)},\n" for item in value)
        return "[\n" + indent(items, "    ") + "]"
    if isinstance(value, bool | str):
        # TOML's strings are those of JSON, except that U+007F must be escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


T = TypeVar("T")


def decode(cls: type[T], table: object, where: str) -> T:
    """Return a dataclass built from a table.

    Args:
        cls: A dataclass whose annotations use `str`, `int`, `float`, `bool`, `None`, `Literal`,
            unions, `tuple[X, ...]`, `dict[str, X]` and other dataclasses. Its `__post_init__` may
            raise `ValueError` for impossible values.
        table: The table, as parsed.
        where: File and key for messages, such as `simcse.toml: views.anchor`.

    Raises:
        OpencseError: An unknown or missing key, a wrong type, or an impossible value.
    """
    if not isinstance(table, Mapping):
        raise OpencseError(f"{where}: expected a table, found {type(table).__name__} {table!r}")
    hints = typing.get_type_hints(cls)
    values = check_fields(cls, table, where)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for name, field in fields.items():
        required = (
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        )
        if required and name not in values:
            raise OpencseError(
                f"{where}: the key '{name}' is missing", f"Expected: {_described(hints[name])}."
            )
    try:
        return cls(**values)
    except ValueError as error:
        raise OpencseError(f"{where}: {error}") from None


def check_fields(cls: type, table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the decoded values of a table that may lack keys; arguments as for `decode`.

    Raises:
        OpencseError: An unknown key or a wrong type.
    """
    hints = typing.get_type_hints(cls)
    check_keys(table, [f.name for f in dataclasses.fields(cls) if f.init], where)
    values = {key: _value(hints[key], value, _at(where, key)) for key, value in table.items()}
    for key, value in values.items():
        # An infinite number is allowed only inside a tuple, as an open end.
        if isinstance(value, float) and not math.isfinite(value):
            raise OpencseError(
                f"{_at(where, key)}: {value} is not a finite number", "Give a finite number."
            )
    return values


def check_keys(table: Mapping[str, Any], allowed: Iterable[str], where: str) -> None:
    """Check that a table has no unknown keys.

    Raises:
        OpencseError: It has one; the message suggests a similar key.
    """
    allowed = sorted(allowed)
    for key in table:
        if key not in allowed:
            raise unknown_name_error("key", key, allowed, where)


def unknown_name_error(
    what: str, name: str, allowed: Iterable[str], where: str = ""
) -> OpencseError:
    """Return the error for an unknown name, with the most similar known name as a suggestion."""
    allowed = sorted(allowed)
    near = difflib.get_close_matches(name, allowed, n=1)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    prefix = f"{where}: " if where else ""
    return OpencseError(f"{prefix}unknown {what} '{name}'", f"{hint}Allowed: {', '.join(allowed)}.")


def encode(value: object) -> Any:
    """Return a dataclass as a plain table, without fields that are None, as TOML has no null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = getattr(type(value), "kind", None)
        table = {} if kind is None else {"kind": kind}
        for field in dataclasses.fields(value):
            content = getattr(value, field.name)
            if content is not None:
                table[field.name] = encode(content)
        return table
    if isinstance(value, Mapping):
        return {k: encode(v) for k, v in value.items() if v is not None}
    if isinstance(value, tuple | list):
        return [encode(v) for v in value]
    return value


def _at(where: str, key: str) -> str:
    return f"{where}.{key}" if ": " in where else f"{where}: {key}"


def _value(hint: Any, value: object, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _union(get_args(hint), value, where)
    if origin is Literal:
        if not any(value == a and type(value) is type(a) for a in get_args(hint)):
            raise _mismatch(hint, value, where)
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _mismatch(hint, value, where)
        items = get_args(hint)
        if items[-1] is Ellipsis:
            items = (items[0],) * len(value)
        if len(value) != len(items):
            raise OpencseError(f"{where}: expected {len(items)} values, found {len(value)}")
        decoded = []
        for i, (item, part) in enumerate(zip(items, value, strict=True)):
            decoded.append(_value(item, part, f"{where}[{i}]"))
        return tuple(decoded)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise _mismatch(hint, value, where)
        item_hint = get_args(hint)[1]
        return {str(k): _value(item_hint, v, _at(where, str(k))) for k, v in value.items()}
    if dataclasses.is_dataclass(hint):
        if isinstance(value, hint):  # type: ignore[arg-type]
            return value
        return decode(hint, value, where)  # type: ignore[arg-type]
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        # A larger integer has no exact float.
        value = float(value) if abs(value) < 2**63 else math.nan
    if isinstance(value, float) and math.isnan(value):
        raise OpencseError(f"{where}: not a number", "Give a finite number.")
    if hint is Any:
        return value
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise _mismatch(hint, value, where)
    return value


def _union(options: tuple[Any, ...], value: object, where: str) -> Any:
    tables = [o for o in options if dataclasses.is_dataclass(o)]
    if tables and isinstance(value, Mapping):
        return decode(tables[0], value, where)  # type: ignore[arg-type]
    # With `float` last, an integer stays an integer if both are allowed.
    for option in sorted(options, key=lambda o: o is float):
        if option is type(None):
            if value is None:
                return None
            continue
        try:
            return _value(option, value, where)
        except OpencseError:
            continue
    raise _mismatch(Union[options], value, where)  # noqa: UP007


def _mismatch(hint: Any, value: object, where: str) -> OpencseError:
    actual = f"{type(value).__name__} {value!r}"
    if isinstance(value, Mapping):
        actual = "a table"
    return OpencseError(f"{where}: expected {_described(hint)}, found {actual}")


def _described(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_described(a) for a in get_args(hint) if a is not type(None))
    if origin is Literal:
        return " or ".join(repr(a) for a in get_args(hint))
    if origin is tuple:
        return f"a list of {_described(get_args(hint)[0])}"
    if origin is dict or dataclasses.is_dataclass(hint):
        return "a table"
    return {str: "a string", int: "an integer", float: "a number", bool: "true or false"}.get(
        hint, str(hint)
    )
