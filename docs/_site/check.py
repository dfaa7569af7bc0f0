"""Check the built site and its sources: no page asks another host for anything, tables, figures and names are current.

python docs/_site/check.py SITE
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import contents
import figures
import names
import tables

REQUEST = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=["']?(?:https?:)?//[^"' >]+"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*\bhref=["']?(?:https?:)?//[^"' >]+"""
)
IMPORTED = re.compile(r"""(?:@import|url\()\s*["']?(?:https?:)?//[^"')]+""")


def requests(site: Path) -> list[str]:
    """Return each request that a page or a style sheet would send to another host."""
    found = []
    for pattern, suffix in ((REQUEST, ".html"), (IMPORTED, ".css")):
        for path in sorted(site.rglob(f"*{suffix}")):
            text = path.read_text(encoding="utf-8")
            found += [f"{path.relative_to(site)}: {match[0]}" for match in pattern.finditer(text)]
    return found


def main(site: Path) -> int:
    """Print what is wrong, and return the exit code."""
    found = requests(site)
    for each in found:
        print("request to another host:", each)
    stale = [
        tables.main(write=False),
        figures.main(write=False),
        contents.main(write=False),
        names.main(),
    ]
    return int(bool(found) or any(stale))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
