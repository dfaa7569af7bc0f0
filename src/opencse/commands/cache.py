"""`opencse cache`: show or remove the files that are kept between runs."""

from __future__ import annotations

import typer

from opencse.commands.measuring_options import CacheOptions
from opencse.foundation.cache import KINDS, cache_root, cache_sizes, clear_cache
from opencse.foundation.errors import OpencseError


def command(options: CacheOptions) -> None:
    """Print the sizes, or remove the files."""
    for kind in options.only:
        if kind not in KINDS:
            raise OpencseError(f"--only {kind}: no such kind", f"There are {', '.join(KINDS)}.")
    if options.only and not options.clear:
        raise OpencseError("--only goes with --clear", "Add --clear.")
    if options.clear:
        typer.echo(f"removed {_size(clear_cache(options.only or KINDS))} from {cache_root()}")
        return
    sizes = cache_sizes()
    for kind, size in sizes.items():
        typer.echo(f"{kind:<10} {_size(size):>9}")
    typer.echo(f"{'all':<10} {_size(sum(sizes.values())):>9}  in {cache_root()}")


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
