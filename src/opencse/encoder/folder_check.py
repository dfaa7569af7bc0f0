"""The one check of a model folder, made before any library opens it.

A model folder comes from a stranger. The libraries that load one read pickled weights if they find
no others, follow paths in indexes and settings, fetch base models and kernels from a hub, and build
whatever sizes a configuration asks for. So the folder is read here first, as data: its modules, the
modules in them, their settings and the headers of their weights. What is not known to be harmless
is refused.
"""

from __future__ import annotations

import contextlib
import json
import math
import pickle
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open

from opencse.foundation.errors import OpencseError
from opencse.foundation.plugins import MODULES
from opencse.foundation.reading import (
    error_reason,
    read_json,
    read_text,
    regular_file,
    stay_inside,
    translate_errors,
)

REMEDY = "Download or save the model again."

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
_TRANSFORMERS = ("Transformer", "CLIPModel")
_ROUTERS = ("Router", "Asym")
_CONFIG_FILES = {
    "Router": "router_config.json",
    "Asym": "router_config.json",
    "CNN": "cnn_config.json",
    "LSTM": "lstm_config.json",
    "WordEmbeddings": "wordembedding_config.json",
}
_WITH_WEIGHTS = (
    "CNN",
    "Dense",
    "LSTM",
    "LayerNorm",
    "StaticEmbedding",
    "WeightedLayerPooling",
    "WordEmbeddings",
    "WordWeights",
)
_WITHOUT_WEIGHTS = ("BoW", "Dropout", "Normalize", "Pooling")
_MODULE_TYPE = re.compile(r"sentence_transformers(\.[a-z_]+)*\.(\w+)")
_DENSE_VECTORS = "SentenceTransformer"

_LONGEST_PROMPT = 10_000
_MOST_MODULES = 100
_MOST_LAYERS = 1000
_MOST_PARTS = 100_000
_MOST = 100_000_000
_LONGEST_SEQUENCE = 1_000_000
# Numbers in the tables that a model computes for itself, such as masks; files don't hold them.
_BUFFERS = 2**30
# Weights that a model may have and its files lack, such as an unused decoder or head.
_SPARE = 50_000_000

# Attention that is part of transformers and torch. Others are fetched from a hub.
_ATTENTION = ("eager", "sdpa", "flex_attention")
_SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
_SETTINGS_FILES = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
_SETTINGS = (
    "max_seq_length",
    "do_lower_case",
    "transformer_task",
    "modality_config",
    "module_output_name",
    "unpad_inputs",
    "processing_kwargs",
    "query_length",
    "document_length",
    "query_expansion",
    "model_args",
    "model_kwargs",
    "tokenizer_args",
    "processor_kwargs",
    "config_args",
    "config_kwargs",
)
# Arguments that a folder may hand to transformers; others name files, repositories or code.
_ARGUMENTS = (
    "add_pooling_layer",
    "add_prefix_space",
    "attn_implementation",
    "clean_up_tokenization_spaces",
    "do_lower_case",
    "dtype",
    "max_length",
    "model_max_length",
    "output_hidden_states",
    "padding_side",
    "torch_dtype",
    "truncation_side",
    # sentence-transformers drops it.
    "trust_remote_code",
    "use_cache",
    "use_fast",
)
_TOKENIZERS_OF_WORDS = ("WhitespaceTokenizer", "TransformersTokenizerWrapper")


class Part(NamedTuple):
    """A module of a model: its folder, the name of its class, and its settings."""

    folder: Path
    kind: str
    settings: dict[str, Any]


def check_model_folder(folder: Path) -> None:
    """Check that loading a folder runs none of its code, unpickles nothing and stays inside it.

    The complete set of files with weights that will be read is safetensors inside the folder, and
    the sizes that its settings ask for are those that the files hold, or bounded.

    Raises:
        OpencseError: A file is missing, damaged, of the wrong form or no regular file; something
            lies outside the folder; a module or a setting is unknown; weights are pickled; or sizes
            are absurd.
    """
    # `parts_of` checks the files of every folder. A module without settings may have no folder:
    # wheels leave empty folders out.
    for part in parts_of(folder):
        if part.kind in MODULES:
            _check_settings(part.folder / "config.json", part.settings)
            _check_settings(
                part.folder / "config.json", dict(part.settings.get("transformer") or {})
            )
            _own_weights(part.folder)
        elif part.kind in _TRANSFORMERS:
            _check_transformer(part)
        elif part.kind in _WITH_WEIGHTS:
            _check_settings(part.folder / _config_file(part.kind), part.settings)
            _own_weights(part.folder)
            _check_module(part)
        else:
            _check_settings(part.folder / _config_file(part.kind), part.settings)
    _check_model_settings(folder)


def parts_of(folder: Path) -> list[Part]:
    """Return the modules that will be loaded from a folder, those inside routers included.

    Raises:
        OpencseError: A list of modules has the wrong form, or names an unknown module or a place
            outside.
    """
    _check_files(folder)
    if not (folder / "modules.json").exists():
        return [Part(folder, "Transformer", _read_config(folder / "config.json"))]
    path = folder / "modules.json"
    modules = _list_of_modules(path)
    parts: list[Part] = []
    for module in modules:
        kind = _kind(path, module["type"])
        _add_part(parts, folder, module["path"], kind, path)
    return parts


def first_transformer(folder: Path) -> Path:
    """Return the folder of a model's first module; of a plain transformers model, its own.

    Raises:
        OpencseError: As `parts_of`; or the first module is no transformer.
    """
    first = parts_of(folder)[0]
    if first.kind not in _TRANSFORMERS:
        raise OpencseError(
            f"{folder}: begins with a {first.kind}, not a transformer",
            "Train a model that begins with one.",
        )
    return first.folder


def _list_of_modules(path: Path) -> list[dict[str, str]]:
    try:
        modules = json.loads(read_text(path, REMEDY))
    except (ValueError, RecursionError) as error:
        raise OpencseError(f"{path}: not JSON ({error_reason(error)})", REMEDY) from None
    if not isinstance(modules, list) or not modules:
        raise OpencseError(f"{path}: not a list of modules", REMEDY)
    for module in modules:
        is_module = isinstance(module, dict) and all(
            isinstance(module.get(key), str) for key in ("path", "type")
        )
        if not is_module:
            raise OpencseError(f"{path}: a module without a path or a type", REMEDY)
    return modules


def _add_part(parts: list[Part], root: Path, name: str, kind: str, source: Path) -> None:
    """Add a module and, of a router, all modules in it."""
    if len(parts) >= _MOST_MODULES:
        raise OpencseError(f"{source}: more than {_MOST_MODULES} modules", REMEDY)
    try:
        folder = stay_inside(root, name, REMEDY)
    except OpencseError as error:
        raise OpencseError(
            f"{source}: the module '{name}' is outside the model's folder ({error.problem})", REMEDY
        ) from None
    if folder.is_dir():
        _check_files(folder)
    elif kind in _TRANSFORMERS or kind in _ROUTERS:
        raise OpencseError(f"{folder}: no such folder, but {source.name} names it", REMEDY)
    path = folder / _config_file(kind)
    if kind in _ROUTERS and not path.exists():
        path = folder / "config.json"
    needs_settings = kind in _TRANSFORMERS or kind in _ROUTERS or kind in MODULES
    settings = _read_config(path) if needs_settings or path.exists() else {}
    parts.append(Part(folder, kind, settings))
    if kind in _ROUTERS:
        _add_parts_of_router(parts, root, folder, settings, path)


def _add_parts_of_router(
    parts: list[Part], root: Path, folder: Path, settings: dict[str, Any], path: Path
) -> None:
    types = settings.get("types")
    if not isinstance(types, dict) or len(types) > _MOST_MODULES:
        raise OpencseError(f"{path}: not the settings of at most {_MOST_MODULES} modules", REMEDY)
    structure = settings.get("structure")
    if not isinstance(structure, dict) or len(json.dumps(structure)) > 100_000:
        raise OpencseError(f"{path}: no structure of its modules", REMEDY)
    for inner, inner_type in types.items():
        if not isinstance(inner_type, str) or not inner:
            raise OpencseError(f"{path}: a module without a path or a type", REMEDY)
        # Another name may lead outside, which `_add_part` refuses.
        relative = inner
        if _is_plain(inner):
            relative = (folder / inner).relative_to(root).as_posix()
        _add_part(parts, root, relative, _kind(path, inner_type), path)


def _is_plain(name: str) -> bool:
    return re.fullmatch(r"[\w.-]+", name) is not None and name not in (".", "..")


def _kind(source: Path, type_name: str) -> str:
    """Return the class of a module, or the type itself of a meaning block.

    Modules of other packages are refused: importing one runs code that the folder chose. The
    meaning block is not imported from the folder either (`opencse.encoder.loading`).
    """
    if type_name in MODULES:
        return type_name
    match = _MODULE_TYPE.fullmatch(type_name)
    if match is None:
        raise OpencseError(
            f"{source}: '{type_name}' is not a module of sentence-transformers",
            "Models with their own code are not run.",
        )
    known = (*_TRANSFORMERS, *_ROUTERS, *_WITH_WEIGHTS, *_WITHOUT_WEIGHTS)
    if match[2] not in known:
        raise OpencseError(
            f"{source}: '{type_name}' is not a module of sentence-transformers for dense vectors",
            f"Known: {', '.join(sorted(known))}.",
        )
    return match[2]


def _config_file(kind: str) -> str:
    return _CONFIG_FILES.get(kind, "config.json")


def _read_config(path: Path) -> dict[str, Any]:
    return read_json(path, REMEDY)


def _check_files(folder: Path) -> None:
    """Check that all files of a folder are regular and inside it, as libraries read many of them."""
    if not folder.exists():
        # Tools that skip empty folders lose that of a module without settings, such as 2_Normalize;
        # sentence-transformers loads the model all the same.
        return
    with translate_errors(folder, "cannot be read", REMEDY):
        entries = sorted(folder.iterdir())
    for entry in entries:
        if entry.is_symlink():
            stay_inside(folder, entry.name, REMEDY)
        if not entry.is_dir():
            regular_file(entry)
        # An adapter's configuration names the model that it changes.
        if entry.name == "adapter_config.json":
            raise OpencseError(
                f"{folder}: an adapter (LoRA), not a model",
                "Merge it into its model: merge_and_unload() of peft, then save.",
            )
    templates = folder / "additional_chat_templates"
    if templates.is_dir():
        _check_files(templates)


def _check_transformer(part: Part) -> None:
    folder = part.folder
    _check_settings(folder / "config.json", part.settings)
    for name in _SETTINGS_FILES:
        if (folder / name).exists():
            _check_arguments(folder / name)
    files = transformer_weights(folder)
    tensors = sum(len(_header(path)) for path in files)
    layers = part.settings.get("num_hidden_layers")
    if isinstance(layers, int) and layers < 1:
        # A library would build a model without layers, and leave out their weights without a word.
        raise OpencseError(
            f"{folder / 'config.json'}: num_hidden_layers is {layers}, not a number of layers",
            REMEDY,
        )
    if isinstance(layers, int) and layers > max(100, tensors):
        raise OpencseError(
            f"{folder / 'config.json'}: num_hidden_layers is {layers}, but its files hold {tensors} weights",
            REMEDY,
        )
    if (folder / "tokenizer.json").exists():
        _check_tokenizer(folder / "tokenizer.json")


def transformer_weights(folder: Path) -> list[Path]:
    """Return the files with weights that transformers reads from a folder, after checking each.

    Raises:
        OpencseError: They are pickled, missing, empty or outside the folder.
    """
    whole = folder / _WEIGHTS
    if whole.exists() and not (whole.is_file() and not whole.stat().st_size):
        return [_safetensors(folder, _WEIGHTS)]
    index = folder / _INDEX
    if index.exists() and not whole.exists():
        table = read_json(index, REMEDY)
        names = table.get("weight_map")
        if not isinstance(names, dict) or not names:
            raise OpencseError(f"{index}: names no files", REMEDY)
        shards = {name if isinstance(name, str) else repr(name) for name in names.values()}
        return [_safetensors(folder, name) for name in sorted(shards)]
    raise _no_weights(folder)


def _own_weights(folder: Path) -> Path:
    """Return the file with the weights of a module of sentence-transformers, after checking it."""
    path = folder / _WEIGHTS
    if not path.exists():
        raise _no_weights(folder)
    return _safetensors(folder, _WEIGHTS)


def _safetensors(folder: Path, name: str) -> Path:
    path = stay_inside(folder, name, REMEDY)
    if path.suffix != ".safetensors":
        raise _pickled(path)
    _header(regular_file(path))
    return path


def _no_weights(folder: Path) -> OpencseError:
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in entries:
        if path.suffix in _PICKLED or ".bin." in path.name:
            return _pickled(path)
    return OpencseError(f"{folder}: contains no {_WEIGHTS}, or an empty one", REMEDY)


def _pickled(path: Path) -> OpencseError:
    """Return the refusal, with a command that writes only the tensors as safetensors."""
    new = str(path.parent / _WEIGHTS)
    code = (
        f"import torch, safetensors.torch as s; w = torch.load({str(path)!r}, weights_only=True); "
        f"s.save_file({{k: v.clone() for k, v in w.items()}}, {new!r}, dict(format='pt'))"
    )
    return OpencseError(
        f"{path}: pickled weights, which can run code when they are loaded",
        f"If you trust them, save them as safetensors: `python -c {shlex.quote(code)}`",
    )


class _Stored(NamedTuple):
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def _header(path: Path) -> dict[str, _Stored]:
    """Return shape and type of each tensor of a safetensors file, without reading it."""
    found = {}
    with (
        translate_errors(path, "the model cannot be loaded", REMEDY, SafetensorError),
        safe_open(path, "pt") as file,
    ):
        for name in file.keys():  # noqa: SIM118
            tensor = file.get_slice(name)
            found[name] = _Stored(tuple(tensor.get_shape()), str(tensor.get_dtype()))
    return found


def _check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Check the values of a configuration, and of those inside it."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            _check_settings(path, value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Mapping):
                    _check_settings(path, item)
                else:
                    _check_number(path, key, item)
        else:
            _check_number(path, key, value)
        _check_source(path, key, value)


def _check_number(path: Path, key: str, value: object) -> None:
    if "dropout" in key and isinstance(value, int | float) and not 0 <= value <= 1:
        raise OpencseError(f"{path}: {key} is {value!r}, not a share from 0 to 1", REMEDY)
    if not isinstance(value, int) or isinstance(value, bool):
        return
    # A library would try to build so many layers for hours, or take all memory.
    if re.search(r"layers?$|blocks?$|depths?$|experts?$|stages?$|hash", key):
        most = _MOST_LAYERS
    elif re.search(r"labels?$|heads?$|groups?$|buckets?$", key):
        most = _MOST_PARTS
    elif re.search(r"theta|seed|base|length|window|vocab", key):
        most = 2**62
    else:
        most = _MOST
    if value > most:
        raise OpencseError(f"{path}: {key} is {value}, more than any model has", REMEDY)


def _check_source(path: Path, key: str, value: object) -> None:
    """Refuse settings that fetch code or weights from elsewhere."""
    if key.endswith(("attn_implementation", "experts_implementation")):
        choices = value.values() if isinstance(value, Mapping) else [value]
        for choice in choices:
            if choice is not None and choice not in (*_ATTENTION, "grouped_mm", "batched_mm"):
                raise OpencseError(
                    f"{path}: {key} is {choice!r:.80}, which is not part of transformers",
                    f"Remove it, or choose one of {', '.join(_ATTENTION)}: others are code from a hub.",
                )
    if key == "transformers_weights" and value is not None:
        raise OpencseError(f"{path}: {key} names {value!r:.80}", f"Name the file {_WEIGHTS}.")
    if key == "quantization_config" and value:
        raise OpencseError(
            f"{path}: quantised weights, which need other packages to load",
            "Save the model in fp32, fp16 or bf16.",
        )
    elsewhere = ("use_pretrained_backbone", "use_timm_backbone")
    names_another = key.endswith("model_name_or_path")
    if (key in elsewhere or names_another) and value:
        raise OpencseError(
            f"{path}: {key} is {value!r:.80}, which is another model",
            "Use a model that is complete in its folder.",
        )


def _check_arguments(path: Path) -> None:
    """Check the settings that a `Transformer` hands on to transformers."""
    settings = read_json(path, REMEDY)
    for key, value in settings.items():
        if key not in _SETTINGS:
            raise OpencseError(f"{path}: unknown setting {key!r:.80}", f"Remove it. {REMEDY}")
        inner = value if isinstance(value, Mapping) else {}
        if key.endswith(("_args", "_kwargs")) and key != "processing_kwargs":
            for argument in inner:
                if argument not in _ARGUMENTS:
                    raise OpencseError(
                        f"{path}: {key} has the unknown argument {argument!r:.80}", "Remove it."
                    )
    if settings.get("transformer_task", "feature-extraction") != "feature-extraction":
        raise OpencseError(
            f"{path}: its task is {settings['transformer_task']!r:.80}, not feature-extraction",
            "Use a model for sentence embeddings.",
        )
    modalities = settings.get("modality_config") or {}
    if not _are_known_modalities(modalities):
        raise OpencseError(f"{path}: modality_config names no known method", REMEDY)
    _check_lengths(path, settings.get("processing_kwargs"))
    _check_settings(path, settings)


def _check_lengths(path: Path, arguments: object) -> None:
    """Check that a tokenizer is not asked to pad texts to a length that fills the memory."""
    if not isinstance(arguments, Mapping):
        return
    for key, value in arguments.items():
        _check_lengths(path, value)
        if isinstance(value, int) and value > _LONGEST_SEQUENCE:
            raise OpencseError(f"{path}: {key} is {value}, more tokens than any text has", REMEDY)


def _are_known_modalities(modalities: object) -> bool:
    """Return whether each modality is read by a method of transformers for text or features."""
    if not isinstance(modalities, Mapping):
        return False
    for modality in modalities.values():
        method = modality.get("method") if isinstance(modality, Mapping) else None
        if not isinstance(method, str):
            return False
        if re.fullmatch(r"forward|get_[a-z]+_features", method) is None:
            return False
    return True


def _check_model_settings(folder: Path) -> None:
    path = folder / "config_sentence_transformers.json"
    if not (folder / "modules.json").exists() or not path.exists():
        return
    settings = read_json(path, REMEDY)
    kind = settings.get("model_type", _DENSE_VECTORS)
    if kind != _DENSE_VECTORS:
        raise OpencseError(
            f"{folder}: a {kind!s:.80}, which has no dense vectors", f"Use a {_DENSE_VECTORS}."
        )
    cut = settings.get("truncate_dim")
    if cut is not None and (type(cut) is not int or not 1 <= cut <= _MOST):
        raise OpencseError(
            f"{path}: truncate_dim is {cut!r:.80}, not a number of dimensions", REMEDY
        )
    similarity = settings.get("similarity_fn_name")
    if similarity is not None and similarity not in _SIMILARITIES:
        raise OpencseError(
            f"{path}: similarity_fn_name is {similarity!r:.80}, which no library knows",
            f"Use one of {', '.join(_SIMILARITIES)}.",
        )
    prompts = settings.get("prompts") or {}
    are_texts = isinstance(prompts, Mapping) and all(
        isinstance(prompt, str | None) for prompt in prompts.values()
    )
    if are_texts and any(len(prompt or "") > _LONGEST_PROMPT for prompt in prompts.values()):
        raise OpencseError(f"{path}: a prompt has more than {_LONGEST_PROMPT:,} characters", REMEDY)
    if not are_texts or not isinstance(settings.get("default_prompt_name"), str | None):
        raise OpencseError(f"{path}: a prompt is not a text", REMEDY)


def _check_module(part: Part) -> None:
    """Check a module with weights against its settings: activation, tokenizer and all shapes."""
    path = part.folder / _config_file(part.kind)
    activation = part.settings.get("activation_function")
    if part.kind == "Dense" and activation is not None and not _is_activation(activation):
        raise OpencseError(
            f"{path}: {activation!r:.80} is not an activation of torch",
            "Name one such as torch.nn.modules.activation.Tanh.",
        )
    if part.kind == "WordEmbeddings":
        tokenizer = part.settings.get("tokenizer_class")
        match = _MODULE_TYPE.fullmatch(tokenizer) if isinstance(tokenizer, str) else None
        if match is None or match[2] not in _TOKENIZERS_OF_WORDS:
            raise OpencseError(f"{path}: the tokenizer {tokenizer!r:.80} is unknown", REMEDY)
    if part.kind in ("CNN", "Dense", "LSTM", "LayerNorm", "WeightedLayerPooling"):
        import sentence_transformers.sentence_transformer.modules as kinds

        class_ = getattr(kinds, part.kind)
        new_names = getattr(class_, "config_key_renames", {})
        arguments = {}
        for key, value in part.settings.items():
            if key != "activation_function":
                arguments[new_names.get(key, key)] = value
        _check_shapes(lambda: class_(**arguments), [part.folder / _WEIGHTS], path)


def _is_activation(name: object) -> bool:
    if not isinstance(name, str):
        return False
    package, _, kind = name.rpartition(".")
    if package not in ("torch.nn.modules.activation", "torch.nn.modules.linear", "torch.nn"):
        return False
    class_ = getattr(torch.nn, kind, None)
    known = isinstance(class_, type) and issubclass(class_, torch.nn.Module)
    return known and (class_.__module__ == "torch.nn.modules.activation" or kind == "Identity")


def check_sizes(folder: Path, build: Callable[[], torch.nn.Module]) -> None:
    """Check that the files of a transformer hold what its configuration asks for.

    Args:
        folder: The folder of the transformer.
        build: Builds the model; called on the meta device, where weights have shapes and no
            numbers.

    Raises:
        OpencseError: A weight has another shape than in the configuration, or is no
            floating-point number; or the configuration asks for much more than the files hold.
    """
    _check_shapes(build, transformer_weights(folder), folder / "config.json")


def _check_shapes(build: Callable[[], torch.nn.Module], files: list[Path], config: Path) -> None:
    try:
        with torch.device("meta"):
            model = build()
    except OpencseError:
        raise
    # Each class of model has errors of its own.
    except Exception as error:
        reason = error_reason(error)
        raise OpencseError(f"{config}: the model cannot be loaded ({reason})", REMEDY) from error
    stored: dict[str, _Stored] = {}
    for path in files:
        stored |= _header(path)
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    by_name = {name.removeprefix(prefix): (name, tensor) for name, tensor in stored.items()}
    asked = 0
    for name, parameter in model.named_parameters():
        asked += parameter.numel()
        if name.removeprefix(prefix) not in by_name:
            continue
        file_name, tensor = by_name[name.removeprefix(prefix)]
        if tensor.shape != tuple(parameter.shape):
            raise OpencseError(
                f"{config}: asks for {file_name} of {_shape(parameter.shape)}, "
                f"the file holds {_shape(tensor.shape)}",
                REMEDY,
            )
        if parameter.is_floating_point() and not tensor.dtype.startswith(("F", "BF")):
            raise OpencseError(
                f"{config.parent}: the weights {file_name} are of the type {tensor.dtype}, "
                "not floating-point numbers",
                REMEDY,
            )
    held = sum(tensor.size for tensor in stored.values())
    if asked > 4 * held + _SPARE:
        raise OpencseError(f"{config}: asks for {asked:,} weights, its files hold {held:,}", REMEDY)
    tables = sum(buffer.numel() for buffer in model.buffers())
    if tables > _BUFFERS:
        raise OpencseError(f"{config}: asks for tables of {tables:,} numbers", REMEDY)


def _shape(shape: tuple[int, ...] | torch.Size) -> str:
    return " × ".join(str(size) for size in shape) or "one number"


# How many times longer a tokenizer may make a text before it cuts it.
_EXPANSION = 100.0


def _check_tokenizer(path: Path) -> None:
    """Check that a tokenizer does not lengthen texts without bound before it truncates them."""
    table = read_json(path, REMEDY)
    factor = _expansion(table.get("normalizer")) * _expansion(table.get("pre_tokenizer"))
    if factor > _EXPANSION:
        raise OpencseError(f"{path}: makes texts up to {factor:.3g} times longer", REMEDY)


def _expansion(step: object) -> float:
    """Return by which factor a step of a tokenizer may make a text longer."""
    if not isinstance(step, Mapping):
        return 1.0
    factor = 1.0
    for key in ("normalizers", "pretokenizers"):
        inner = step.get(key)
        if isinstance(inner, list):
            for each in inner:
                # Bounded, so that it does not overflow.
                factor = min(factor * _expansion(each), 1e300)
    content = step.get("content")
    if step.get("type") == "Replace" and isinstance(content, str):
        pattern = step.get("pattern")
        literal = pattern.get("String") if isinstance(pattern, Mapping) else None
        # A regular expression may match one character, or between two.
        shortest = len(literal) if isinstance(literal, str) else 1
        factor *= max(1.0, len(content) / max(1, shortest))
    if step.get("type") == "Prepend" and isinstance(step.get("prepend"), str):
        factor *= max(1.0, len(step["prepend"]))
    return factor


@contextlib.contextmanager
def closed_folder(folder: Path) -> Iterator[None]:
    """Let libraries load a checked folder without a hub and without unpickling.

    `check_model_folder` refuses what is known to leave a folder. This is the second lock, for what
    a later version of a library may do: within the block, requests to the hub and loading of
    pickles fail.
    """
    from huggingface_hub import constants

    def refused(*_: object, **__: object) -> Any:
        raise OpencseError(f"{folder}: a file of it would be unpickled, which can run code", REMEDY)

    loaders = [(torch, "load"), (pickle, "load"), (pickle, "loads")]
    before = [getattr(module, name) for module, name in loaders]
    offline = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    for module, name in loaders:
        setattr(module, name, refused)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = offline
        for (module, name), loader in zip(loaders, before, strict=True):
            setattr(module, name, loader)
