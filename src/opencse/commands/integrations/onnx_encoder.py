"""Running an exported folder with onnxruntime and tokenizers; PyTorch takes no part."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

GRAPH, TOKENIZER, SETTINGS = "model.onnx", "tokenizer.json", "encoder.json"


class OnnxEncoder:
    """Texts in, float32 matrix out, from a folder that `export_onnx` wrote, by onnxruntime and tokenizers.

    Args:
        folder: What `export_onnx` wrote.
        options: An `onnxruntime.SessionOptions`, for example with a number of threads.
    """

    def __init__(self, folder: str | Path, options: Any = None) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        folder = Path(folder)
        self.settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._session = onnxruntime.InferenceSession(folder / GRAPH, options, providers=["CPUExecutionProvider"])

    def encode(self, texts: Sequence[str], prompt: str | None = None, batch_size: int = 32) -> np.ndarray:
        """Return vectors (n, d), row i for text i; `prompt` stands before every text, by default the model's own."""
        prompt = self.settings["default_prompt"] if prompt is None else prompt
        vectors = np.empty((len(texts), self.settings["dimension"]), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))  # alike lengths together: little padding
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            tokens = self._tokenizer.encode_batch([prompt + texts[row] for row in rows])
            known = {
                "input_ids": [t.ids for t in tokens],
                "attention_mask": [t.attention_mask for t in tokens],
                "token_type_ids": [t.type_ids for t in tokens],
            }
            feed = {name: np.array(known[name], dtype=np.int64) for name in self.settings["inputs"]}
            vectors[rows] = self._session.run(["sentence_embedding"], feed)[0]
        return vectors
