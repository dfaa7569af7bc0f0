"""The command line: `opencse`, and `python -m opencse`."""

from __future__ import annotations

import sys

from opencse.foundation.terminal import print_line


def main() -> None:
    """Run the command line. Ctrl-C while it is imported is one line, too."""
    try:
        from opencse.commands.main import main as command_line
    except KeyboardInterrupt:
        print_line("opencse: stopped")
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
