"""`opencse cache`: show or remove the files that are kept between runs."""

from __future__ import annotations

from opencse.commands.options import CacheOptions
from opencse.foundation.cache import cache_root, cache_sizes, clear_cache
from opencse.foundation.result_table import Number, Table, show
from opencse.foundation.terminal import print_text


def command(options: CacheOptions) -> None:
    """Print the sizes, or remove the files."""
    if options.clear:
        print_text(f"removed {_size(clear_cache())} from {cache_root()}")
        return
    sizes = cache_sizes()
    rows = [(kind, _size(size)) for kind, size in sizes.items()]
    rows.append(("all", _size(sum(sizes.values()))))
    show(Table(("kind", "size"), rows, notes=[f"in {cache_root()}"], totals=1))


def _size(count: int) -> Number:
    if count >= 2**30:
        return Number(count / 2**30, 1, " GiB")
    return Number(count / 2**20, 1, " MiB")
