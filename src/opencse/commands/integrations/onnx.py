"""An encoder as one ONNX graph from token ids to sentence vectors, checked against PyTorch (extra `onnx`)."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import Tensor, nn

from opencse.commands.command_line import apply, takes
from opencse.commands.options import ExportOptions
from opencse.commands.reports.page import output_folder
from opencse.debias.meaning_block import block_of
from opencse.debias.payload import Parts, is_yes_no_question
from opencse.encoder import load_encoder
from opencse.encoder.backbone import pooling_name, weights_hash
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced, write_json
from opencse.foundation.numbers import unit_rows
from opencse.foundation.terminal import print_text

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

GRAPH = "model.onnx"
TOKENIZER = "tokenizer.json"
SETTINGS = "encoder.json"
PRECISIONS = ("fp32", "fp16", "int8")
# Largest difference of a vector's coordinate in fp32; rounding is some hundred times smaller.
TOLERANCE = 1e-4
# The same with weights in half precision, whose rounding adds up over layers.
HALF_TOLERANCE = 5e-3
# Least cosine of a text's vector with PyTorch's in int8.
MIN_COSINE = 0.9
INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""The inputs of a graph that it may have, and what `tokenizers` calls them."""

_SCOPES = "pkg.torch.onnx.name_scopes"
# A layer of the transformer, which is the first module.
_LAYER = re.compile(r"'parts\.0\.[^']*\.layers?\.(\d+)\.")
# Protobuf files end at 2 GiB: the weights of larger models are in a separate file.
_LARGE = 1_900_000_000
# Number of tokens from which a limit means "none": transformers writes a huge number then.
_NO_MAXIMUM = 1_000_000_000
# Beyond the usual maximum of 512 tokens, and not too slow if the maximum is many thousands.
_CHECK_WORDS = 1100


@takes(ExportOptions)
def export_onnx(options: ExportOptions) -> tuple[float, float]:
    """Export an encoder.

    The graph takes int64 `input_ids`, `attention_mask` and, where the model has them,
    `token_type_ids`, each (B, L) for any B and L, and gives float32 `sentence_embedding` (B, d). With
    a meaning block it gives `code` (B, 8) and `topic` (B, 192) as well, which
    `opencse.debias.payload` compares. The tokenizer truncates and pads by itself.

    Returns:
        Largest absolute difference of a coordinate between onnxruntime's and PyTorch's vectors, and
        the least cosine.

    Raises:
        OpencseError: A package is missing, `out` is occupied, the model has a part that is not
            exported, or the vectors differ by more than `TOLERANCE` (fp32) or `HALF_TOLERANCE`
            (fp16), or have a cosine below `MIN_COSINE` (int8). Nothing is written then.
    """
    out = Path(options.out).resolve()
    name = str(options.model)
    precision = options.precision
    if precision not in PRECISIONS:
        raise OpencseError(
            f"there is no precision {precision!r} for ONNX",
            f"Choose one of {', '.join(PRECISIONS)}.",
        )
    for package in ("onnx", "onnxscript", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            raise OpencseError(
                f"the package {package} is not installed", 'pip install "opencse[onnx]"'
            )
    _check_folder(out, overwrite=options.overwrite)
    encoder = load_encoder(name, device="cpu").eval()
    inputs = _check_model(encoder, name)
    with replaced(out, folder=True) as temporary:
        block = block_of(encoder)
        graph = temporary / GRAPH
        # The code of a meaning block is read from small differences, which quantised products move.
        quantised = precision == "int8" and block is None
        _write_graph(encoder, inputs, graph, name, int8=quantised)
        if precision == "fp16":
            _store_narrow(graph)
        elif precision == "int8" and block is not None:
            _store_narrow(graph, first=int(block.config["first"] or 0))
        # It truncates and pads since the graph was written, which uses the encoder.
        encoder.tokenizer.backend_tokenizer.save(str(temporary / TOKENIZER))
        write_json(temporary / SETTINGS, _settings(encoder, inputs, precision))

        difference, cosine = _compared(encoder, OnnxEncoder(temporary))
        if not _is_near(precision, difference, cosine):
            far = f"differ from PyTorch's by {difference:.1e}, and the least cosine is {cosine:.3f}"
            remedy = "Nothing was written."
            if precision != "fp32":
                remedy = "Nothing was written; export this model in fp32."
            raise OpencseError(f"{name}: in {precision}, onnxruntime's vectors {far}", remedy)
    return difference, cosine


def _check_folder(out: Path, *, overwrite: bool) -> None:
    """Check that a folder is free for an export.

    Raises:
        OpencseError: It is a file, holds other files, or an export that is not to be replaced.
    """
    folder = output_folder(out)
    if not folder.exists():
        return
    held = {path.name for path in folder.iterdir()}
    others = sorted(held - {GRAPH, f"{GRAPH}.data", TOKENIZER, SETTINGS})
    if others:
        raise OpencseError(
            f"{out}: already holds other files ({others[0]})", "Choose another output folder."
        )
    if held and not overwrite:
        raise OpencseError(
            f"{out}: already holds an export", "Use --overwrite to replace it, or another folder."
        )


def _settings(encoder: SentenceTransformer, inputs: list[str], precision: str) -> dict[str, Any]:
    """Return what a program must know to use the graph like the model."""
    max_length = encoder.max_seq_length
    if max_length is not None and max_length >= _NO_MAXIMUM:
        max_length = None
    return {
        "inputs": inputs,
        "outputs": _outputs(encoder),
        "dimension": encoder.get_embedding_dimension(),
        "pooling": pooling_name(encoder),
        "precision": precision,
        "max_length": max_length,
        "prompts": encoder.prompts,
        "default_prompt": encoder.prompts.get(encoder.default_prompt_name or "", ""),
        "similarity": encoder.similarity_fn_name,
        "weights_sha256": weights_hash(encoder),
    }


def command(options: ExportOptions) -> None:
    """Export, and print the size and how near the vectors are to PyTorch's."""
    difference, cosine = apply(export_onnx, options)
    size = sum(file.stat().st_size for file in Path(options.out).glob(f"{GRAPH}*"))
    print_text(
        f"written to {options.out}: model.onnx in {options.precision}, {size / 1e6:.1f} MB; largest difference "
        f"from PyTorch's vectors {difference:.1e}, least cosine {cosine:.4f}"
    )


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
        self._session = onnxruntime.InferenceSession(
            folder / GRAPH, options, providers=["CPUExecutionProvider"]
        )

    def encode(
        self, texts: Sequence[str], prompt: str | None = None, batch_size: int = 32
    ) -> np.ndarray:
        """Return vectors (n, d), row i for text i; `prompt` stands before every text, by default the model's own."""
        return self._run(texts, prompt, batch_size, ["sentence_embedding"])[0]

    def parts(self, texts: Sequence[str], prompt: str | None = None, batch_size: int = 32) -> Parts:
        """Return vector, code and topic of each text, for `opencse.debias.payload`.

        Raises:
            OpencseError: The model was exported without a meaning block, or before opencse 0.3.
        """
        if "code" not in self.settings.get("outputs", []):
            raise OpencseError(
                "this export has no meaning block", "Export a model with one (opencse run debias)."
            )
        names = ["sentence_embedding", "code", "topic"]
        vectors, code, topic = self._run(texts, prompt, batch_size, names)
        asks = np.array([is_yes_no_question(text) for text in texts], dtype=bool)
        return Parts(vectors=vectors, code=code, topic=topic, asks=asks)

    def _run(
        self, texts: Sequence[str], prompt: str | None, batch_size: int, names: list[str]
    ) -> list[np.ndarray]:
        """Return some outputs of the graph, row i for text i."""
        if prompt is None:
            prompt = self.settings["default_prompt"]
        widths = {output.name: output.shape[-1] for output in self._session.get_outputs()}
        widths["sentence_embedding"] = self.settings["dimension"]
        found = [np.empty((len(texts), widths[name]), dtype=np.float32) for name in names]
        # Texts of similar lengths go together, so that there is little padding.
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            tokens = self._tokenizer.encode_batch([prompt + texts[row] for row in rows])
            feed = {}
            for name in self.settings["inputs"]:
                feed[name] = np.array([getattr(encoding, INPUTS[name]) for encoding in tokens])
            outputs = self._session.run(names, feed)
            for matrix, output in zip(found, outputs, strict=True):
                matrix[rows] = output
        return found


class _Graph(nn.Module):
    """The modules of a `SentenceTransformer` as a function of tensors."""

    def __init__(self, encoder: SentenceTransformer) -> None:
        super().__init__()
        self.parts = nn.ModuleList(encoder)
        self.dimension = encoder.truncate_dim
        self.block = block_of(encoder)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        given = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
        }
        features = {name: values for name, values in given.items() if values is not None}
        for part in self.parts:
            features = part(features)
        vectors = features["sentence_embedding"][:, : self.dimension]
        if self.block is None:
            return vectors
        return vectors, *self.block.code_and_topic(features["training_embedding"])


def _check_model(encoder: SentenceTransformer, name: str) -> list[str]:
    """Return the names of the model's inputs, after checking that it begins with a transformer of plain text."""
    remedy = "Use this model with sentence-transformers."
    first: Any = encoder[0]
    is_transformer = isinstance(first, Transformer)
    if not is_transformer or first.modalities != ["text"] or not first.tokenizer.is_fast:
        raise OpencseError(
            f"{name}: begins with a {type(first).__name__} that cannot be exported",
            "ONNX export is for transformers of plain text with a fast tokenizer.",
        )
    pools_prompt = all(getattr(module, "include_prompt", True) for module in encoder)
    if any(encoder.prompts.values()) and not pools_prompt:
        raise OpencseError(
            f"{name}: its pooling leaves the prompt's tokens out, which an exported graph cannot",
            remedy,
        )
    block = block_of(encoder)
    if block is not None and block.tokenizers is not None:
        raise OpencseError(
            f"{name}: its meaning block reads text that is cut into other tokens, which a graph cannot do",
            remedy,
        )
    features = encoder.preprocess(["a"])
    inputs = [key for key, value in features.items() if isinstance(value, Tensor)]
    unknown = sorted(set(inputs) - set(INPUTS))
    if unknown:
        raise OpencseError(
            f"{name}: takes {unknown[0]}, which is not exported",
            f"Known inputs: {', '.join(INPUTS)}.",
        )
    return [key for key in INPUTS if key in inputs]


def _outputs(encoder: SentenceTransformer) -> list[str]:
    """Return the names of what the graph gives."""
    if block_of(encoder) is None:
        return ["sentence_embedding"]
    return ["sentence_embedding", "code", "topic"]


def _write_graph(
    encoder: SentenceTransformer, inputs: list[str], path: Path, name: str, *, int8: bool
) -> None:
    """Export in fp32 with both sizes of the inputs left open, and quantise the graph if `int8`."""
    large = sum(p.numel() * p.element_size() for p in encoder.parameters()) > _LARGE
    if not int8:
        _export(encoder, inputs, path, name, large=large)
        return
    for layer in encoder.modules():
        # All that goes into a product gets one scale, but in feed-forward layers, which are not
        # square, some tokens have a hundred times as much as others.
        if isinstance(layer, nn.Linear) and layer.in_features != layer.out_features:
            layer.forward = MethodType(_linear_of_scaled_rows, layer)  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        exact = Path(folder) / GRAPH
        _export(encoder, inputs, exact, name, large=large)
        _quantise(exact, path, large=large)


def _export(
    encoder: SentenceTransformer, inputs: list[str], path: Path, name: str, *, large: bool
) -> None:
    """Export in fp32.

    Raises:
        OpencseError: PyTorch cannot export the model.
    """
    examples = encoder.preprocess(["a short text", "and another one, of more words than that"])
    try:
        with _silence(), torch.inference_mode(False), torch.no_grad():
            torch.onnx.export(
                _Graph(encoder).eval(),
                kwargs={key: examples[key] for key in inputs},
                f=str(path),
                dynamo=True,
                external_data=large,
                verbose=False,
                input_names=inputs,
                output_names=_outputs(encoder),
                dynamic_shapes={key: {0: "batch", 1: "length"} for key in inputs},
            )
    except torch.onnx.OnnxExporterError as error:
        # The first line that is not empty has the reason; a hundred others follow.
        lines = [line for line in str(error).splitlines() if line.strip()]
        reason = lines[0] if lines else type(error).__name__
        raise OpencseError(f"{name}: PyTorch cannot export this model ({reason[:200]})") from error


def _quantise(graph: Path, path: Path, *, large: bool) -> None:
    """Write a graph whose matrices are 8-bit integers with a scale for each output channel.

    Activations are quantised while the graph runs (dynamic quantisation). Weights use 7 of the 8
    bits, because 8 overflow on processors without VNNI.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    written = onnx.load(graph)
    # Quantisation transposes matrices, and then stumbles over their old shapes.
    del written.graph.value_info[:]
    onnx.save(written, graph, save_as_external_data=large)
    with _silence():
        quantize_dynamic(
            graph,
            path,
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            use_external_data_format=large,
        )


def _store_narrow(path: Path, *, first: int | None = None) -> None:
    """Store the matrices of a graph in 16 bits, half their size; it computes in 32 bits as before.

    onnxruntime widens them once, when it loads the graph. Those of the backbone's layers from
    `first` on are 8-bit integers, with a scale for each output channel: a block has its own copies of
    these layers, and reads only averages of theirs. Eight bits are too few for all others, because
    the code is read from small differences, which a rounding of any layer below it moves.
    """
    import onnx

    model = onnx.load(path)
    is_large = Path(f"{path}.data").exists()
    in_8_bits: set[str] = set()
    if first is not None:
        in_8_bits = _beside_copied_layers(model.graph, first)
    kept = []
    widening = []
    for tensor in model.graph.initializer:
        is_matrix = tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) > 1
        if not is_matrix:
            kept.append(tensor)
            continue
        matrix = onnx.numpy_helper.to_array(tensor)
        if tensor.name in in_8_bits:
            stored, nodes = _in_8_bits(matrix, tensor.name)
        else:
            stored, nodes = _in_16_bits(matrix, tensor.name)
        kept.extend(stored)
        widening.extend(nodes)
    nodes = list(model.graph.node)
    del model.graph.initializer[:]
    del model.graph.node[:]
    model.graph.initializer.extend(kept)
    model.graph.node.extend([*widening, *nodes])
    Path(f"{path}.data").unlink(missing_ok=True)
    onnx.save(model, path, save_as_external_data=is_large, location=f"{path.name}.data")


def _beside_copied_layers(graph: Any, first: int) -> set[str]:
    """Return the names of the matrices in the backbone's layers from `first` on, which the block has copies of.

    The exporter notes for each product which module it comes from.
    """
    matrices = {tensor.name for tensor in graph.initializer}
    found = set()
    for node in graph.node:
        if node.op_type != "MatMul" or node.input[1] not in matrices:
            continue
        scopes = {each.key: each.value for each in node.metadata_props}.get(_SCOPES, "")
        layer = _LAYER.search(scopes)
        if layer is not None and int(layer[1]) >= first:
            found.add(node.input[1])
    return found


def _in_16_bits(matrix: np.ndarray, name: str) -> tuple[list[Any], list[Any]]:
    """Return what stores a matrix in half precision, and the nodes that widen it."""
    import onnx

    halves = onnx.numpy_helper.from_array(matrix.astype(np.float16), f"{name}.half")
    widen = onnx.helper.make_node("Cast", [halves.name], [name], to=onnx.TensorProto.FLOAT)
    return [halves], [widen]


def _in_8_bits(matrix: np.ndarray, name: str) -> tuple[list[Any], list[Any]]:
    """Return what stores a matrix (input, output) as 8-bit integers and scales, and the nodes that widen it."""
    import onnx

    largest = np.abs(matrix).max(axis=0, keepdims=True)
    scale = np.maximum(largest, 1e-12) / 127
    integers = np.round(matrix / scale).astype(np.int8)
    stored = [
        onnx.numpy_helper.from_array(integers, f"{name}.int8"),
        onnx.numpy_helper.from_array(scale.astype(np.float32), f"{name}.scale"),
    ]
    to = onnx.TensorProto.FLOAT
    nodes = [
        onnx.helper.make_node("Cast", [f"{name}.int8"], [f"{name}.wide"], to=to),
        onnx.helper.make_node("Mul", [f"{name}.wide", f"{name}.scale"], [name]),
    ]
    return stored, nodes


def _is_near(precision: str, difference: float, cosine: float) -> bool:
    """Return whether exported vectors are as near to PyTorch's as their precision allows."""
    if precision == "int8":
        return cosine >= MIN_COSINE
    if precision == "fp16":
        return difference <= HALF_TOLERANCE
    return difference <= TOLERANCE


def _linear_of_scaled_rows(layer: nn.Linear, x: Tensor) -> Tensor:
    """Return what a linear layer does, of rows that are divided by their largest number first."""
    largest = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-6)
    product = nn.functional.linear(x / largest, layer.weight) * largest
    if layer.bias is None:
        return product
    return product + layer.bias


def _compared(encoder: SentenceTransformer, exported: OnnxEncoder) -> tuple[float, float]:
    """Return the largest difference of a coordinate, and the least cosine, of exported and PyTorch's vectors.

    Each text is encoded alone, and with the others in one padded batch.
    """
    texts = [
        "",
        "No.",
        "The ferry leaves at NOON, whatever the weather.",
        "Não é longe: 3,5 km à pé — or half an hour by boat, if the tide (which turns at six) allows it.",
        " ".join(["A letter that goes on, and on, about nothing but rain."] * (_CHECK_WORDS // 10)),
    ]
    expected = np.tile(encoder.encode(texts, show_progress_bar=False), (2, 1))
    together = exported.encode(texts)
    alone = [exported.encode([text]) for text in texts]
    vectors = np.concatenate([together, *alone])
    cosines = (unit_rows(vectors) * unit_rows(expected)).sum(axis=1)
    return float(np.abs(vectors - expected).max()), float(cosines.min())


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the exporter's remarks off the screen: missing torchvision, deprecations, names of axes."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(action="ignore"):
        try:
            yield
        finally:
            logging.disable(before)
