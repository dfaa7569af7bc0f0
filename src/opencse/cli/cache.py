"""`opencse cache`: what is kept between runs, how much it takes, and how to remove it."""

from __future__ import annotations

from typing import Annotated

import typer


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove what is kept; the next run takes longer.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="With --clear: this kind alone; repeatable.")] = None,
) -> None:
    """Show where tokens, vectors and converted texts are kept between runs and how much they take, or remove them.

    The folder is $OPENCSE_CACHE if that is set. The longest unused go when all take more than $OPENCSE_CACHE_GIB (20).
    """
    from opencse.errors import OpencseError
    from opencse.io.cache import KINDS, cache_root, cache_sizes, clear_cache

    for kind in only or ():
        if kind not in KINDS:
            raise OpencseError(f"--only {kind}: no such kind", f"There are {', '.join(KINDS)}.")
    if only and not clear:
        raise OpencseError("--only goes with --clear", "Add --clear.")
    if clear:
        typer.echo(f"removed {_size(clear_cache(only or KINDS))} from {cache_root()}")
        return
    sizes = cache_sizes()
    for kind, size in sizes.items():
        typer.echo(f"{kind:<10} {_size(size):>9}")
    typer.echo(f"{'all':<10} {_size(sum(sizes.values())):>9}  in {cache_root()}")


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
