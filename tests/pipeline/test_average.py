"""`opencse.average`, and its command."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

import opencse
from opencse.cli.main import main
from opencse.encoder import load_encoder, save_encoder
from opencse.errors import OpencseError
from tests.tiny import tiny_bert, tiny_roberta


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    """Three folders of runs, whose models differ by small random changes."""
    folder = tmp_path_factory.mktemp("runs")
    backbone, generator = tiny_bert(folder / "bert"), torch.Generator().manual_seed(1)
    for number in range(3):
        encoder = load_encoder(backbone, pooling="mean")
        for weights in encoder.parameters():
            weights.data += 0.01 * torch.randn(weights.shape, generator=generator)
        save_encoder(encoder, folder / f"run-{number}" / "model")
    return [folder / f"run-{number}" for number in range(3)]


def weights_of(model: Path) -> dict[str, torch.Tensor]:
    return load_encoder(model, pooling="backbone", device="cpu").state_dict()


def test_the_mean_of_three_models(runs, tmp_path) -> None:
    out = opencse.average(runs, out=tmp_path / "mean")
    mean, each = weights_of(out), [weights_of(run) for run in runs]
    for name, found in mean.items():
        torch.testing.assert_close(found, torch.stack([weights[name] for weights in each]).mean(dim=0), msg=name)
    assert SentenceTransformer(str(out), device="cpu").encode("the cat").shape == (32,)
    card = (out / "README.md").read_text()
    assert all(f"- `{run}`" in card for run in runs)


def test_an_earlier_model_is_replaced_only_if_asked_and_other_files_never(runs, tmp_path) -> None:
    out = opencse.average(runs[:2], out=tmp_path / "mean")
    before = weights_of(out)
    with pytest.raises(OpencseError, match="already holds a model"):
        opencse.average(runs, out=out)
    opencse.average(runs, out=out, overwrite=True)
    assert any(not torch.equal(weights, before[name]) for name, weights in weights_of(out).items())
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OpencseError, match="already holds other files"):
        opencse.average(runs, out=tmp_path, overwrite=True)
    with pytest.raises(OpencseError, match="is a file"):
        opencse.average(runs, out=tmp_path / "notes.txt", overwrite=True)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_models_without_a_sensible_mean_are_refused(runs, tmp_path) -> None:
    def refused(*models: Path, pooling: str = "backbone") -> str:
        with pytest.raises(OpencseError) as error:
            opencse.average(models, out=tmp_path / "mean", pooling=pooling)
        assert not (tmp_path / "mean").exists()
        return str(error.value)

    assert "Name two or more models" in refused(runs[0])
    narrow = tiny_bert(tmp_path / "narrow", width=16)
    assert "differ in their modules or sizes" in refused(runs[0], narrow, pooling="mean")
    other = tiny_bert(tmp_path / "other", seed=7)
    assert "too far apart" in refused(runs[0], other, pooling="mean")
    assert "differ in their modules or sizes" in refused(runs[0], tiny_roberta(tmp_path / "roberta"), pooling="mean")
    encoder = load_encoder(runs[0], pooling="backbone")
    save_encoder(SentenceTransformer(modules=[*encoder, Normalize()], device="cpu"), tmp_path / "normalised")
    assert "differ in their pooling or modules" in refused(runs[0], tmp_path / "normalised")
    renamed = shutil.copytree(runs[0] / "model", tmp_path / "renamed")
    tokenizer = (renamed / "tokenizer.json").read_text()
    (renamed / "tokenizer.json").write_text(tokenizer.replace('"cat"', '"cow"'))
    assert "differ in their tokens" in refused(runs[0], renamed)


def test_the_command(runs, tmp_path, monkeypatch, capfd) -> None:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["opencse", "average", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), *capfd.readouterr()

    out = tmp_path / "mean"
    code, printed, _ = call(*map(str, runs), "-o", str(out))
    assert (code, (out / "modules.json").is_file()) == (0, True)
    assert "the mean of 3 models" in printed
    code, _, errors = call(str(runs[0]), str(runs[1]), "-o", str(out))
    assert (code, errors.count("\n")) == (2, 1)
    assert "--overwrite" in errors
