"""Folders of models with a meaning block: the module's file lies in the folder, so that it loads without opencse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from meaning_block import MeaningBlock
from sentence_transformers import SentenceTransformer

from opencse.encoder.model_folder import transformer_folder

BLOCK_TYPE = "meaning_block.MeaningBlock"
"""Type of the block in `modules.json`: the class in the file `meaning_block.py` of the folder."""


def save_with_block(source: str | Path, block: MeaningBlock, folder: str | Path) -> None:
    """Write a copy of a saved model with a meaning block as its last module.

    The model's own files stay as they are, but for one setting: the transformer returns all hidden states. So the copy
    loads in the versions of sentence-transformers that load the model (5.0 and later), with `trust_remote_code=True`
    where opencse is not installed.

    Args:
        source: A sentence-transformers folder without a block.
        block: The block.
        folder: The folder to write; its files are replaced.
    """
    source, folder = Path(source), Path(folder)
    shutil.copytree(source, folder, dirs_exist_ok=True)
    settings = transformer_folder(folder) / "config.json"
    _write(settings, json.loads(settings.read_text(encoding="utf-8")) | {"output_hidden_states": True})
    modules: list[dict[str, Any]] = json.loads((source / "modules.json").read_text(encoding="utf-8"))
    number = len(modules)
    path = f"{number}_{type(block).__name__}"
    (folder / path).mkdir(exist_ok=True)
    block.save(str(folder / path))
    _write(folder / "modules.json", [*modules, {"idx": number, "name": str(number), "path": path, "type": BLOCK_TYPE}])


def load_with_block(folder: str | Path, **settings: Any) -> SentenceTransformer:
    """Load a model that `save_with_block` wrote; the code in the folder is not run.

    Args:
        folder: The model's folder.
        settings: Further arguments of `SentenceTransformer`.
    """
    classes = {BLOCK_TYPE: MeaningBlock}
    return SentenceTransformer._load_with_module_classes(str(folder), module_classes=classes, **settings)


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
