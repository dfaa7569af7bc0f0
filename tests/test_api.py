"""The public names: what an editor, `help` and a type checker see."""

from __future__ import annotations

import subprocess
import sys

import opencse


def test_every_public_name_is_listed_and_is_what_it_says() -> None:
    assert dir(opencse) == sorted(opencse.__all__)
    for name in opencse.__all__:
        value = getattr(opencse, name)
        assert callable(value) or isinstance(value, str), f"{name} is a {type(value)}"


def test_importing_a_package_of_the_same_kind_does_not_hide_a_function() -> None:
    import opencse.commands.compare
    import opencse.evaluation
    import opencse.evaluation.probes

    assert callable(opencse.compare)
    assert callable(opencse.evaluate)
    assert callable(opencse.probe)


def test_import_is_light() -> None:
    code = "import sys, opencse; sys.exit('torch' in sys.modules or 'rich' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_recipes_display_as_a_table() -> None:
    from rich.console import Console

    listed = opencse.list_recipes()
    assert "osscse" in [name for name, *_ in listed.rows]
    console = Console(width=200, record=True, quiet=True)
    console.print(listed)
