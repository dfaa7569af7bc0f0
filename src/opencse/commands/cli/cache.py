"""`opencse cache`: show or remove the files that are kept between runs."""

from __future__ import annotations

from typing import Annotated

import typer

from opencse.foundation.result_table import Number, Table, show


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove the cached files; the next run takes longer.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="With --clear: only this kind; repeatable.")] = None,
) -> None:
    """Show the folder and the size of cached tokens, vectors and converted texts, or remove them.

    The folder is $OPENCSE_CACHE if that is set. Above $OPENCSE_CACHE_GIB (20), the longest unused files are removed.
    """
    from opencse.foundation.cache import KINDS, cache_root, cache_sizes, clear_cache
    from opencse.foundation.errors import OpencseError

    for kind in only or ():
        if kind not in KINDS:
            raise OpencseError(f"--only {kind}: no such kind", f"There are {', '.join(KINDS)}.")
    if only and not clear:
        raise OpencseError("--only goes with --clear", "Add --clear.")
    if clear:
        typer.echo(f"removed {_size(clear_cache(only or KINDS))} from {cache_root()}")
        return
    sizes = cache_sizes()
    rows = [(kind, _size(size)) for kind, size in (*sizes.items(), ("all", sum(sizes.values())))]
    show(Table(("kind", "size"), rows, notes=[f"in {cache_root()}"], totals=1))


def _size(count: int) -> Number:
    return Number(count / 2**30, 1, " GiB") if count >= 2**30 else Number(count / 2**20, 1, " MiB")
