"""An encoder as one ONNX graph from token ids to sentence vectors, checked against PyTorch (extra `onnx`)."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
import typer
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import Tensor, nn

from opencse.commands.measuring_options import ExportOptions
from opencse.encoder import load_encoder
from opencse.encoder.weights_hash import pooling_name, weights_hash
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced_folder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

GRAPH, TOKENIZER, SETTINGS = "model.onnx", "tokenizer.json", "encoder.json"
OnnxPrecision = Literal["fp32", "fp16", "int8"]
PRECISIONS: tuple[OnnxPrecision, ...] = get_args(OnnxPrecision)
TOLERANCE = 1e-4  # of a vector's coordinate; float32 rounding is some hundred times smaller
MIN_COSINE = {"fp16": 0.999, "int8": 0.9}
"""Least cosine of a text's exported vector with PyTorch's, in precisions that round more than fp32."""
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS = ("sentence_embedding", "last_hidden_state")
_WEIGHTS = f"{GRAPH}.data"  # protobuf files end at 2 GiB: of larger models the weights stand beside the graph
_LARGE = 1_900_000_000
_CHECK_WORDS = 1100  # beyond the usual maximum of 512 tokens, and not too slow where the maximum is many thousands


@dataclass(frozen=True, kw_only=True)
class OnnxExport:
    """Result of an export.

    Attributes:
        folder: Where it is.
        size: Bytes of the graph with its weights.
        max_difference: Largest absolute difference of a coordinate between onnxruntime's and PyTorch's vectors.
        min_cosine: Least cosine between onnxruntime's and PyTorch's vector of a text.
    """

    folder: Path
    size: int
    max_difference: float
    min_cosine: float


def export_onnx(
    model: str | Path,
    out: str | Path,
    *,
    precision: OnnxPrecision = "fp32",
    pooling: str = "backbone",
    overwrite: bool = False,
) -> OnnxExport:
    """Write an encoder as `model.onnx`, with what running it needs: `tokenizer.json` and `encoder.json`.

    The graph takes int64 `input_ids`, `attention_mask` and, where the model has them, `token_type_ids`, each (B, L) for
    any B and L, and gives float32 `sentence_embedding` (B, d) and `last_hidden_state` (B, L, width). The tokenizer
    truncates and pads by itself. Before the folder appears, onnxruntime's vectors of a few texts are compared with
    those of `SentenceTransformer.encode`.

    Args:
        model: A folder, a hub id or a bundled name.
        out: The folder to write; new or empty, unless `overwrite`.
        precision: Number format of the weights: `fp32`, `fp16` (half the size) or `int8` (a quarter, and faster on a
            CPU). Vectors are float32 in each.
        pooling: As for `load_encoder`, for an encoder without pooling of its own.
        overwrite: Replace an earlier export; a folder that holds anything else is never replaced.

    Raises:
        OpencseError: A package is missing, `out` is occupied, the model has a part that is not exported, or the vectors
            differ by more than `TOLERANCE` (fp32) or have a cosine below `MIN_COSINE`. Nothing is written then.
    """
    out = Path(out).resolve()
    if precision not in PRECISIONS:
        raise OpencseError(f"there is no precision {precision!r} for ONNX", f"Choose one of {', '.join(PRECISIONS)}.")
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if importlib.util.find_spec(name) is None:
            raise OpencseError(f"the package {name} is not installed", 'pip install "opencse[onnx]"')
    _check_folder(out, overwrite=overwrite)
    encoder = load_encoder(model, pooling=pooling, device="cpu").float().eval()
    inputs = _check_model(encoder, str(model))
    with replaced_folder(out) as temporary:
        _write_graph(encoder, inputs, temporary / GRAPH, str(model), precision)
        _tokenizer(encoder).save(str(temporary / TOKENIZER))
        settings = {
            "inputs": inputs,
            "outputs": OUTPUTS,
            "dimension": encoder.get_embedding_dimension(),
            "pooling": pooling_name(encoder),
            "precision": precision,
            "max_length": _max_length(encoder),
            "prompts": encoder.prompts,
            "default_prompt": encoder.prompts.get(encoder.default_prompt_name or "", ""),
            "similarity": encoder.similarity_fn_name,
            "weights_sha256": weights_hash(encoder),
        }
        settings_text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
        (temporary / SETTINGS).write_text(settings_text, encoding="utf-8")
        difference, cosine = _checked_vectors(encoder, temporary, precision, str(model))
        size = sum(file.stat().st_size for file in temporary.glob(f"{GRAPH}*"))
    return OnnxExport(folder=out, size=size, max_difference=difference, min_cosine=cosine)


def command(options: ExportOptions) -> None:
    """Export, and print the size and how near the vectors are to PyTorch's."""
    result = export_onnx(
        options.model,
        options.out,
        precision=options.precision,
        pooling=options.pooling or "backbone",
        overwrite=options.overwrite,
    )
    agreement = (
        f"largest difference from PyTorch's vectors {result.max_difference:.1e}"
        if options.precision == "fp32"
        else f"least cosine with PyTorch's vectors {result.min_cosine:.4f}"
    )
    size = f"{result.size / 1e6:.1f} MB"
    typer.echo(f"written to {options.out}: model.onnx in {options.precision}, {size}; {agreement}")


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
            fields = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
            feed = {name: np.array([getattr(t, fields[name]) for t in tokens]) for name in self.settings["inputs"]}
            vectors[rows] = self._session.run(["sentence_embedding"], feed)[0]
        return vectors


class _Graph(nn.Module):
    """The modules of a `SentenceTransformer` as a function of tensors."""

    def __init__(self, encoder: SentenceTransformer) -> None:
        super().__init__()
        self.parts = nn.ModuleList(encoder)
        self.dimension = encoder.truncate_dim

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        features = self.parts[0]({name: values for name, values in given.items() if values is not None})
        hidden = features["token_embeddings"]  # a weighted mean of layers takes its place later on
        for part in self.parts[1:]:
            features = part(features)
        return features["sentence_embedding"][:, : self.dimension], hidden


def _check_folder(out: Path, *, overwrite: bool) -> None:
    if out.exists() and not out.is_dir():
        raise OpencseError(f"{out}: is a file, not a folder", "Choose another output folder.")
    found = {path.name for path in out.iterdir()} if out.is_dir() else set()
    if others := sorted(found - {GRAPH, _WEIGHTS, TOKENIZER, SETTINGS}):
        raise OpencseError(f"{out}: already holds other files ({others[0]})", "Choose another output folder.")
    if found and not overwrite:
        raise OpencseError(f"{out}: already holds an export", "Use --overwrite to replace it, or another folder.")


def _check_model(encoder: SentenceTransformer, name: str) -> list[str]:
    """Return the names of the model's inputs, after checking that it begins with a transformer of plain text."""
    first: Any = encoder[0]
    if not isinstance(first, Transformer) or first.modalities != ["text"] or not first.tokenizer.is_fast:
        raise OpencseError(
            f"{name}: begins with a {type(first).__name__} that cannot be exported",
            "ONNX export is for transformers of plain text with a fast tokenizer.",
        )
    if any(encoder.prompts.values()) and not all(getattr(each, "include_prompt", True) for each in encoder):
        raise OpencseError(
            f"{name}: its pooling leaves the prompt's tokens out, which an exported graph cannot",
            "Use this model with sentence-transformers.",
        )
    inputs = [key for key, value in encoder.preprocess(["a"]).items() if isinstance(value, Tensor)]
    if unknown := sorted(set(inputs) - set(INPUTS)):
        raise OpencseError(f"{name}: takes {unknown[0]}, which is not exported", f"Known inputs: {', '.join(INPUTS)}.")
    return [key for key in INPUTS if key in inputs]


def _write_graph(
    encoder: SentenceTransformer, inputs: list[str], path: Path, name: str, precision: OnnxPrecision
) -> None:
    """Export in fp32 with both sizes of the inputs left open, and convert the graph to another precision.

    fp16 stores every weight in half precision; inputs and outputs keep their types. int8 stores the matrices as 8-bit
    integers with a scale for each output channel, and quantises activations while it runs (dynamic quantisation).
    Weights use 7 of the 8 bits, because 8 overflow on processors without VNNI instructions.
    """
    examples = encoder.preprocess(["a short text", "and another one, of more words than that"])
    large = sum(p.numel() * p.element_size() for p in encoder.parameters()) > _LARGE
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, _silence():
        graph = path if precision == "fp32" else Path(folder) / GRAPH
        try:
            with torch.inference_mode(False), torch.no_grad():
                torch.onnx.export(
                    _Graph(encoder).eval(),
                    kwargs={key: examples[key] for key in inputs},
                    f=str(graph),
                    dynamo=True,
                    external_data=large,
                    verbose=False,
                    input_names=inputs,
                    output_names=list(OUTPUTS),
                    dynamic_shapes={key: {0: "batch", 1: "length"} for key in inputs},
                )
        except torch.onnx.OnnxExporterError as error:
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise OpencseError(f"{name}: PyTorch cannot export this model ({reason[:200]})") from error
        if precision == "int8":
            from onnxruntime.quantization import QuantType, quantize_dynamic

            kinds = {"per_channel": True, "reduce_range": True, "weight_type": QuantType.QInt8}
            quantize_dynamic(graph, path, **kinds, use_external_data_format=large)
        elif precision == "fp16":
            import onnx
            from onnxruntime.transformers.float16 import convert_float_to_float16

            converted = convert_float_to_float16(onnx.load(graph), keep_io_types=True)
            onnx.save_model(converted, path, save_as_external_data=large, location=_WEIGHTS)


def _tokenizer(encoder: SentenceTransformer) -> Any:
    """Return a copy of the model's tokenizer that truncates and pads without being told to."""
    from tokenizers import Tokenizer

    source: Any = encoder.tokenizer
    copy = Tokenizer.from_str(source.backend_tokenizer.to_str())
    copy.no_truncation()
    if (maximum := _max_length(encoder)) is not None:
        copy.enable_truncation(maximum, strategy="longest_first", direction=source.truncation_side)
    copy.enable_padding(
        direction=source.padding_side,
        pad_id=source.pad_token_id,
        pad_type_id=source.pad_token_type_id,
        pad_token=source.pad_token,
    )
    return copy


def _max_length(encoder: SentenceTransformer) -> int | None:
    """Return the maximum length in tokens; transformers says "none" by a huge number."""
    maximum = encoder.max_seq_length
    return None if maximum is None or maximum > 1_000_000_000 else maximum


def _checked_vectors(
    encoder: SentenceTransformer, folder: Path, precision: OnnxPrecision, name: str
) -> tuple[float, float]:
    """Return the largest difference of a coordinate, and the least cosine, of exported and PyTorch's vectors.

    Each text is encoded alone, and with the others in one padded batch.

    Raises:
        OpencseError: The vectors are too far apart, or one is NaN.
    """
    texts = [
        "",
        "No.",
        "The ferry leaves at NOON, whatever the weather.",
        "Não é longe: 3,5 km à pé — or half an hour by boat, if the tide (which turns at six) allows it.",
        " ".join(["A letter that goes on, and on, about nothing but rain."] * (_CHECK_WORDS // 10)),
    ]
    exported = OnnxEncoder(folder)
    expected = np.tile(encoder.encode(texts, show_progress_bar=False), (2, 1))
    vectors = np.concatenate([exported.encode(texts), *(exported.encode([text]) for text in texts)])
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(expected, axis=1)
    difference = float(np.abs(vectors - expected).max())
    cosine = float(((vectors * expected).sum(axis=1) / np.maximum(norms, 1e-12)).min())
    if precision == "fp32" and not difference <= TOLERANCE:
        raise OpencseError(
            f"{name}: onnxruntime's vectors differ from PyTorch's by {difference:.1e}, more than {TOLERANCE:.0e}",
            "Nothing was written; this model cannot be exported faithfully.",
        )
    if precision != "fp32" and not cosine >= MIN_COSINE[precision]:
        raise OpencseError(
            f"{name}: in {precision}, a vector has a cosine of only {cosine:.3f} with PyTorch's (the least accepted is "
            f"{MIN_COSINE[precision]:g})",
            "Nothing was written; export this model in fp32.",
        )
    return difference, cosine


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the exporter's remarks off the screen: missing torchvision, deprecations, names of axes."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
