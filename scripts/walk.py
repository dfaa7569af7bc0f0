"""Walk with a sentence: run a command on a small text, and count where it goes and how often it reads.

    python scripts/walk.py train|run|reproduce [CHECKOUT]

The command runs for real, in this process. A counter is put at the beginning of every function of
opencse when its file is imported, so libraries run at full speed. Counted are

- rooms: files of opencse that a call from another file enters;
- climbs: calls of a function, or a function within one, in a package on a higher floor; each caller
  and file once. Methods of objects, such as those of callbacks, are no climbs;
- how often the recipe is read and resolved, the corpus opened and read whole, the output folder
  checked, and the language guessed. Documents that a process of their own parses count, too;
- the stored forms of the text: files and stores that hold sentences or their tokens.

`train` stops at the first update of the weights. `reproduce` trains three systems for two steps each
on 1,500 sentences, so that even a look at the first thousand rows counts as a reading to the end.
CHECKOUT is another working tree of opencse, so that two versions can be compared; functions that
were renamed are counted under either name.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib.abc
import importlib.machinery
import io
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from follow import floors
from structure import name_of, package_of

HERE = Path(__file__).resolve().parents[1]
# Functions by what they do; one that calls another of its group counts once.
CONCERNS = {
    "recipe resolved": {"RecipeFile.resolve"},
    "output folder checked": {"check_folder"},
    "language of the corpus guessed": {"likely_language"},
}
# Functions that write text or its tokens, with their argument that names the file. Texts are cached
# by `_written`, tokens by `new_store`.
WRITERS = {"write_texts": "path", "_written": "how", "new_store": "folder"}
# The function that lets another process parse a document.
PARSER = "paragraphs_of"
# A table of three systems for its first family.
REPRODUCED = "byop/table-2"
# The name under which every file of opencse finds the counter.
COUNTER = "__walk_entered__"
SUBJECTS = "engineer teacher nurse farmer painter lawyer driver singer baker student".split()
VERBS = "opens closes repairs sells cleans paints finds loses moves hides".split()
OBJECTS = "window door bicycle letter engine table lamp garden camera bottle".split()
PLACES = "house station market harbour school library office village tunnel museum".split()


class FirstUpdateReached(BaseException):
    """The weights were updated once. No `Exception`, so that nothing on the way handles it."""


def sentences(count: int) -> list[str]:
    """Return different sentences that rules of English can negate and reword."""
    drawn = random.Random(0)
    found: dict[str, None] = {}
    while len(found) < count:
        words = [drawn.choice(kind) for kind in (SUBJECTS, VERBS, OBJECTS, PLACES)]
        number = drawn.randrange(2, 90)
        subject, verb, thing, place = words
        found[
            f"The old {subject} {verb} the small {thing} near the {place} with {number} steps."
        ] = None
    return list(found)


class CountedFile(io.FileIO):
    """A file that counts the bytes that are read from it."""

    def __init__(self, path: Any, counts: list[int]) -> None:
        super().__init__(path, "rb")
        self._counts = counts
        self._counts.append(0)
        self._place = len(counts) - 1

    def _add(self, size: int) -> None:
        self._counts[self._place] += size

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return the number of bytes."""
        size = super().readinto(buffer)
        self._add(size or 0)
        return size

    def read(self, size: int | None = -1) -> bytes:
        """Read some bytes, or all."""
        content = super().read(-1 if size is None else size)
        self._add(len(content or b""))
        return content

    def readall(self) -> bytes:
        """Read all bytes."""
        content = super().readall()
        self._add(len(content))
        return content


class Reads:
    """Openings of the corpus, each with the bytes that were read, and of files of recipes.

    Attributes:
        parsed: How often each document was read by the process that parses documents.
    """

    def __init__(self, corpus: Path, source: Path) -> None:
        self.corpus = corpus
        self._source = str(source)
        # Bytes that were read, and who opened it, by file.
        self.openings: dict[str, list[int]] = {}
        self.readers: dict[str, list[str]] = {}
        self.recipes: Counter[str] = Counter()
        self.parsed: Counter[str] = Counter()

    def files(self) -> list[str]:
        """Return the files of the corpus, by name."""
        if self.corpus.is_dir():
            return [str(path) for path in sorted(self.corpus.rglob("*")) if path.is_file()]
        return [str(self.corpus)]

    def whole(self) -> list[int]:
        """Return for each file of the corpus how often it was read to the end."""
        counts = []
        for path in self.files():
            size = os.path.getsize(path)
            here = sum(read >= size for read in self.openings.get(path, []))
            counts.append(here + self.parsed[path])
        return counts

    def _reader(self, frame: FrameType | None) -> str:
        """Return the functions of opencse that asked for rows or for a hash, the nearest last."""
        names: list[str] = []
        while frame is not None and len(names) < 5:
            code = frame.f_code
            if code.co_filename.startswith(self._source) and not code.co_filename.endswith(
                ("foundation/tables.py", "text/corpus.py")
            ):
                names.append(code.co_name)
            frame = frame.f_back
        return " > ".join(reversed(names))

    def readings(self) -> Iterator[str]:
        """Yield who opened the first file of the corpus, how often, and how often to its end."""
        first = self.files()[0]
        if self.parsed[first]:
            yield f"{self.parsed[first]:4} times, {self.parsed[first]} to the end: the process of documents"
        for path, readers in list(self.readers.items())[:1]:
            size = os.path.getsize(path)
            ends: Counter[str] = Counter()
            for reader, read in zip(readers, self.openings[path], strict=True):
                ends[reader] += read >= size
            for reader, count in Counter(readers).most_common():
                yield f"{count:4} times, {ends[reader]} to the end: {reader}"

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count while the block runs."""
        original = builtins.open

        def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            if isinstance(file, str | os.PathLike) and not set(mode) & set("wax+"):
                path = os.path.abspath(file)
                if "/recipes/systems/" in path:
                    self.recipes[os.path.basename(path)] += 1
                if path == str(self.corpus) or path.startswith(f"{self.corpus}{os.sep}"):
                    self.readers.setdefault(path, []).append(self._reader(sys._getframe(1)))
                    raw = CountedFile(file, self.openings.setdefault(path, []))
                    return _as_asked(raw, mode, *args, **options)
            return original(file, mode, *args, **options)

        builtins.open = io.open = opened  # type: ignore[assignment]
        try:
            yield
        finally:
            builtins.open = io.open = original


def _as_asked(
    raw: io.RawIOBase,
    mode: str,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> Any:
    """Return a counted file in the form that `open` would give."""
    if buffering == 0:
        return raw
    buffered = io.BufferedReader(raw)
    if "b" in mode:
        return buffered
    return io.TextIOWrapper(buffered, encoding, errors, newline)


class Steps:
    """What the counters see: files that are entered, climbs, and calls of the functions above."""

    def __init__(self, source: Path, reads: Reads) -> None:
        files = {name_of(path, source): path for path in sorted((source / "opencse").rglob("*.py"))}
        self._names = {str(path): name for name, path in files.items()}
        self._floor = floors(files)
        self._reads = reads
        self.rooms: dict[str, None] = {}
        self.climbs: dict[tuple[str, str], None] = {}
        self.done: Counter[str] = Counter()
        self.written: dict[str, None] = {}

    def entered(self) -> None:
        """Count the function that calls this, which has just begun; a generator, when it is first read."""
        frame = sys._getframe(1)
        module = self._names[frame.f_code.co_filename]
        qualified = frame.f_code.co_qualname
        for concern, functions in CONCERNS.items():
            if qualified in functions and not self._is_within(frame, functions):
                self.done[concern] += 1
        if qualified in WRITERS:
            self.written[f"{qualified}: {_shown(frame.f_locals.get(WRITERS[qualified]))}"] = None
        if qualified == PARSER:
            self._reads.parsed[os.path.abspath(frame.f_locals["path"])] += 1
        self._enter(module, frame)

    @staticmethod
    def _is_within(frame: FrameType, functions: set[str]) -> bool:
        """Return whether a file calls its own function, or a function of the same concern is running."""
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename == frame.f_code.co_filename:
            # As for the language of a single document.
            return True
        while caller is not None:
            if caller.f_code.co_qualname in functions:
                return True
            caller = caller.f_back
        return False

    def _enter(self, module: str, frame: FrameType) -> None:
        """Note a call from the nearest function of opencse in another file."""
        caller = frame.f_back
        while caller is not None and caller.f_code.co_filename not in self._names:
            caller = caller.f_back
        if caller is None:
            return
        origin = self._names[caller.f_code.co_filename]
        # Importing a file is not calling it.
        if origin == module or caller.f_code.co_name == "<module>":
            return
        self.rooms[module] = None
        # Methods of objects that a higher floor made, such as callbacks, are how floors should meet.
        parts = frame.f_code.co_qualname.split(".")
        is_function = len(parts) == 1 or parts[-2] == "<locals>"
        if is_function and self._floor[package_of(module)] > self._floor[package_of(origin)]:
            self.climbs[f"{origin}.{caller.f_code.co_qualname}", module] = None


class CountingLoader(importlib.machinery.SourceFileLoader):
    """Imports a file with a call of `Steps.entered` at the beginning of each of its functions."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        """Return the code of a file, with the calls."""
        tree = ast.parse(data)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # After the docstring, which must stay the first statement.
                place = 0 if ast.get_docstring(node) is None else 1
                call = ast.parse(f"{COUNTER}()").body[0]
                first = node.body[min(place, len(node.body) - 1)]
                for part in ast.walk(call):
                    ast.copy_location(part, first)
                node.body.insert(place, call)
            elif isinstance(node, ast.Lambda):
                # The counter returns None, so the value is that of the lambda.
                counted = ast.parse(f"{COUNTER}() or 0", mode="eval").body
                assert isinstance(counted, ast.BoolOp)
                for part in ast.walk(counted):
                    ast.copy_location(part, node.body)
                counted.values[1] = node.body
                node.body = counted
        return compile(tree, path, "exec", dont_inherit=True)

    def get_code(self, fullname: str) -> Any:
        """Compile the file; compiled files on disk have no counters."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class CountingFinder(importlib.abc.MetaPathFinder):
    """Finds the files of opencse for `CountingLoader`."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Return where a module of opencse is, with the loader that counts; None for other modules."""
        if fullname.partition(".")[0] != "opencse":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = CountingLoader(spec.loader.name, spec.loader.path)
        return spec


def _shown(value: Any) -> str:
    return value.name if isinstance(value, Path) else str(value)


def text_files(folder: Path) -> dict[str, int]:
    """Return the files below a folder that hold text or tokens, with their sizes, parts as one."""
    import pyarrow.parquet as pq

    found: Counter[str] = Counter()
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.suffix == ".parquet":
            if "string" in {str(kind) for kind in pq.read_schema(path).types}:
                is_part = path.name.startswith("part-")
                found[str(place.parent / "part-*.parquet" if is_part else place)] += (
                    path.stat().st_size
                )
        elif place.parts[0] in ("tokens", "sentences") and path.is_file():
            found[f"{place.parts[0]}/{place.parts[1]}"] += path.stat().st_size
    return dict(found)


def train_arguments(folder: Path) -> tuple[list[str], Path]:
    """Return a training on a CSV file, and the corpus."""
    corpus = folder / "corpus.csv"
    corpus.write_text("text\n" + "\n".join(f'"{line}"' for line in sentences(12000)), "utf-8")
    options = ["--backbone", "mini-mlm", "--set", "training.max_steps=2"]
    return ["train", "simcse", str(corpus), "-o", str(folder / "out"), *options], corpus


def run_arguments(folder: Path) -> tuple[list[str], Path]:
    """Return a run of `debias` on documents."""
    corpus = folder / "docs"
    corpus.mkdir()
    lines = sentences(1200)
    for number in range(4):
        part = lines[300 * number : 300 * (number + 1)]
        blocks = [" ".join(part[i : i + 6]) for i in range(0, len(part), 6)]
        (corpus / f"page-{number}.md").write_text("# A page\n\n" + "\n\n".join(blocks), "utf-8")
    # A small model, because the scores of both models take most of the time.
    options = ["--backbone", "mini-mlm", "--set", "encoder.pooling=mean"]
    options += ["--quick", "--strength", "0.5"]
    return ["run", "debias", str(corpus), "-o", str(folder / "out"), *options], corpus


def reproduce_arguments(folder: Path) -> tuple[list[str], Path]:
    """Return a table that needs three runs, shortened."""
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(sentences(1500)), "utf-8")
    options = ["--corpus", str(corpus)]
    for setting in ("max_steps=2", "batch_size=16"):
        options += ["--set", f"training.{setting}"]
    return ["reproduce", REPRODUCED, "-o", str(folder / "out"), *options], corpus


WALKS: dict[str, Callable[[Path], tuple[list[str], Path]]] = {
    "train": train_arguments,
    "run": run_arguments,
    "reproduce": reproduce_arguments,
}


def main(name: str, checkout: Path) -> None:
    source = checkout.resolve() / "src"
    sys.path.insert(0, str(source))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        cache = folder / "cache"
        os.environ["OPENCSE_CACHE"] = str(cache)
        arguments, corpus = WALKS[name](folder)
        reads = Reads(corpus, source)
        steps = Steps(source, reads)
        walk(arguments, reads, steps, stops=name == "train")
        report(name, reads, steps)
        for kind, root in (("OUT", folder / "out"), ("CACHE", cache)):
            for path, size in text_files(root).items():
                print(f"  {kind}/{path}  {size:,} bytes")


def walk(arguments: list[str], reads: Reads, steps: Steps, *, stops: bool) -> None:
    """Run a command; `stops` ends it after the first update of the weights."""
    sys.meta_path.insert(0, CountingFinder())
    setattr(builtins, COUNTER, steps.entered)
    from opencse.commands import main as command_line

    if stops:
        _stop_after_update()
    sys.argv = ["opencse", *arguments]
    with reads.counted(), contextlib.suppress(SystemExit, FirstUpdateReached):
        command_line.main()


def _stop_after_update() -> None:
    """Make every optimizer end the walk after its first step."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def stop(*_: Any) -> None:
        raise FirstUpdateReached

    register_optimizer_step_post_hook(stop)


def report(name: str, reads: Reads, steps: Steps) -> None:
    """Print the counts."""
    print(f"{name}: {len(steps.rooms)} rooms, {len(steps.climbs)} climbs")
    for caller, room in steps.climbs:
        print(f"  up from {caller} to {room}")
    for concern in CONCERNS:
        print(f"{concern}: {steps.done[concern]}")
    print(f"recipe files read: {sum(reads.recipes.values())} {dict(reads.recipes)}")
    openings = [len(reads.openings.get(path, [])) for path in reads.files()]
    print(f"corpus, by file: opened here {openings}, read to the end {reads.whole()}")
    for line in reads.readings():
        print(f"  {line}")
    print("written:")
    for line in steps.written:
        print(f"  {line}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else HERE)
