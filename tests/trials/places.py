"""Corpora in odd folders and places: broken parts and datasets, links, devices, pipes and names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.trials.files import flipped, parquet, saved_dataset, write_socket, write_sparse
from tests.trials.trial import Expected
from tests.trials.world import World

Writer = Callable[[Path], object]


def folders(world: World) -> list[tuple[str, str, Writer, Expected]]:
    good = parquet({"text": list(world.sentences)})

    def dataset(spoil: Writer) -> Writer:
        def write(folder: Path) -> None:
            shutil.copytree(saved_dataset(world), folder)
            spoil(folder)

        return write

    def parts(*contents: bytes) -> Writer:
        def write(folder: Path) -> None:
            folder.mkdir()
            for i, content in enumerate(contents):
                (folder / f"part-{i}.parquet").write_bytes(content)

        return write

    def one(pattern: str, change: Callable[[bytes], bytes | None]) -> Writer:
        def spoil(folder: Path) -> None:
            file = next(folder.glob(pattern))
            content = change(file.read_bytes())
            file.unlink() if content is None else file.write_bytes(content)

        return dataset(spoil)

    other = parquet({"words": ["a"] * 9})
    deep = b"[" * 100_000
    state: list[tuple[str, Callable[[bytes], bytes | None]]] = [
        ("gone", lambda _: None),
        ("empty", lambda _: b""),
        ("half", lambda b: b[: len(b) // 2]),
        ("null", lambda _: b"null"),
        ("a list", lambda _: b"[]"),
        ("no keys", lambda _: b"{}"),
        ("binary", lambda _: b"\xff\xfe\0"),
        ("deep", lambda _: deep),
        ("another file's name", lambda b: b.replace(b"data-00000", b"data-99999")),
        ("a file outside", lambda b: b.replace(b"data-00000-of-00001.arrow", b"../../secret.arrow")),
        ("a file's name a number", lambda b: b.replace(b'"data-00000-of-00001.arrow"', b"7")),
    ]
    info = [("gone", lambda _: None), ("empty", lambda _: b""), ("a list", lambda _: b"[]"), ("deep", lambda _: deep)]
    data: list[tuple[str, Callable[[bytes], bytes | None]]] = [
        ("gone", lambda _: None),
        ("empty", lambda _: b""),
        ("half", lambda b: b[: len(b) // 2]),
        ("four bytes", lambda b: b[:4]),
        ("flipped header", lambda b: flipped(b, 6)),
        ("flipped middle", lambda b: flipped(b, len(b) // 2)),
        ("zeros", lambda b: bytes(len(b))),
        ("text", lambda _: b"hello\n" * 100),
        ("Parquet", lambda _: good),
    ]
    return [
        ("folder, empty", "c", parts(), "clear"),
        ("folder, two parts", "c", parts(good, good), "works"),
        ("folder, second part broken", "c", parts(good, good[:-9]), "clear"),
        ("folder, second part another column", "c", parts(good, other), "clear"),
        ("folder, second part empty file", "c", parts(good, b""), "clear"),
        ("folder, a part is a folder", "c", lambda p: (p / "part-0.parquet").mkdir(parents=True), "clear"),
        ("datasets", "c", dataset(lambda _: None), "works"),
        *((f"datasets, state.json {n}", "c", one("state.json", c), "clear") for n, c in state),
        *((f"datasets, dataset_info.json {n}", "c", one("dataset_info.json", c), "either") for n, c in info),
        *((f"datasets, data {n}", "c", one("*.arrow", c), "either") for n, c in data),
    ]


def places(world: World) -> list[tuple[str, str, Writer, Expected]]:
    text = world.corpus.read_bytes()
    long = "d" * 200 + ".txt"
    return [
        ("missing", "c.txt", lambda _: None, "clear"),
        ("name too long", "d" * 300 + ".txt", lambda _: None, "clear"),
        ("path too long", "d/" * 3000 + "c.txt", lambda _: None, "clear"),
        ("name of 204", long, lambda p: p.write_bytes(text), "works"),
        ("link to nothing", "c.txt", lambda p: p.symlink_to("nothing"), "clear"),
        ("link to itself", "c.txt", lambda p: p.symlink_to(p), "clear"),
        ("link to a folder's loop", "c", lambda p: (p.mkdir(), (p / "a.parquet").symlink_to(p)), "clear"),
        ("endless device", "c.txt", lambda p: p.symlink_to("/dev/zero"), "clear"),
        ("random device", "c.txt", lambda p: p.symlink_to("/dev/urandom"), "clear"),
        ("null device", "c.txt", lambda p: p.symlink_to("/dev/null"), "clear"),
        ("full device", "c.txt", lambda p: p.symlink_to("/dev/full"), "clear"),
        ("named pipe", "c.txt", lambda p: os.mkfifo(p), "clear"),
        ("named pipe called parquet", "c.parquet", lambda p: os.mkfifo(p), "clear"),
        ("socket", "c.txt", write_socket, "clear"),
        ("folder called txt", "c.txt", lambda p: p.mkdir(), "clear"),
        ("device called parquet", "c.parquet", lambda p: p.symlink_to("/dev/zero"), "clear"),
        ("device called csv", "c.csv", lambda p: p.symlink_to("/dev/zero"), "clear"),
        ("device called jsonl", "c.jsonl", lambda p: p.symlink_to("/dev/zero"), "clear"),
        ("device called gz", "c.txt.gz", lambda p: p.symlink_to("/dev/zero"), "clear"),
        ("file of /proc", "c.txt", lambda p: p.symlink_to("/proc/self/mem"), "clear"),
        ("environment in /proc", "c.txt", lambda p: p.symlink_to("/proc/self/environ"), "either"),
        ("name with a line's end", "a\nb.txt", lambda p: p.write_bytes(text), "works"),
        ("name with markup", "[red]a.txt", lambda p: p.write_bytes(text), "works"),
        ("name is not UTF-8", os.fsdecode(b"a\xffb.txt"), lambda p: p.write_bytes(text), "works"),
        (
            "folder's name is not UTF-8",
            os.fsdecode(b"a\xffb"),
            lambda p: shutil.copytree(saved_dataset(world), p),
            "either",
        ),
        ("missing, name is not UTF-8", os.fsdecode(b"a\xffb.txt"), lambda _: None, "clear"),
        ("name with a NUL", "a\0b.txt", lambda _: None, "clear"),
        ("name empty", "", lambda _: None, "clear"),
        ("sparse file of 1 TB", "c.txt", write_sparse, "clear"),
    ]
