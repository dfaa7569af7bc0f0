"""The generated reference: commands as tables of two columns, examples as code, links of notebooks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="needs the extra docs")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_site"))
import reference  # noqa: E402
from opencse.objectives import TERMS  # noqa: E402


def test_a_command_shows_its_examples_as_code_and_its_defaults_in_words() -> None:
    pages = reference.command_pages()
    assert "```bash\nopencse check minilm" in pages["commands/check.md"]
    assert "opencse probe MODEL... [OPTIONS]" in pages["commands/probe.md"]
    assert re.search(r"\| `--backbone` \| .* Default: `minilm`\. \|", pages["commands/run.md"])
    assert "Default: `--resume`." in pages["commands/build.md"]
    assert "| option |" not in pages["commands/recipes.md"].split("## ")[0], "a group without options has no table"


def test_math_of_docstrings_becomes_math_of_the_page() -> None:
    page = reference.kinds_page("Terms", "Lead.", TERMS)
    assert ":math:" not in page
    assert "{py:class}`contrastive <opencse.objectives.Contrastive>`" in page


def test_links_of_notebooks_lead_to_pages(tmp_path: Path) -> None:
    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        for link in re.findall(r"\]\((\.\./[^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), link
    (tmp_path / "a.ipynb").write_text("[guide](../../docs/guides/debias.md)", encoding="utf-8")
    assert reference.notebook_page(tmp_path / "a.ipynb") == "[guide](../../../guides/debias.md)"
