"""The command line: one command per file, errors in one line."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from opencse.commands import options
from opencse.commands.command_line import IMPORT, add_command
from opencse.foundation.errors import Interrupted, OpencseError
from opencse.foundation.files import disk_problem
from opencse.foundation.first_moment import raise_interrupts
from opencse.foundation.plugins import import_plugin
from opencse.foundation.reading import error_reason
from opencse.foundation.result_table import show
from opencse.foundation.terminal import escape_messages_of_libraries, print_line, print_text
from opencse.version import __version__

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "unable to mmap",
    "cannot allocate memory",
    "bad_alloc",
)
_THREADS = ("can't start new thread", "thread creation failed")
_PEER = ("closed by peer", "reset by peer", "connection refused", "broken pipe", "timed out")


def command_of(module: str) -> Callable[[Any], None]:
    """Return the command of a file next to this one, which is imported only when the command is called.

    `opencse --help`, and a mistake in an option, need none of what a command imports.
    """

    def execute(options: Any) -> None:
        importlib.import_module(f"opencse.commands.{module}").command(options)

    return execute


app = typer.Typer(
    name="opencse",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Sentence embeddings that follow meaning instead of wording, learned without labels.",
    epilog="Start with: `opencse run debias --backbone minilm -o out/`",
)
add_command(app, "run", options.RunOptions, command_of("run"))
add_command(app, "train", options.TrainCommand, command_of("train"), described=options.TrainOptions)
add_command(app, "build", options.BuildOptions, command_of("build"))
add_command(app, "evaluate", options.EvaluateOptions, command_of("evaluate"))
add_command(app, "probe", options.ProbeOptions, command_of("probe"))
add_command(app, "check", options.CheckOptions, command_of("check"))
add_command(
    app, "compare", options.CompareCommand, command_of("compare"), described=options.CompareOptions
)
add_command(app, "reproduce", options.ReproduceOptions, command_of("reproduce"))
add_command(app, "export", options.ExportOptions, command_of("integrations.onnx"))
add_command(app, "cache", options.CacheOptions, command_of("cache"), plugins=False)
recipes = typer.Typer(
    invoke_without_command=True,
    help="List the recipes that come with opencse, or show one (`recipes show NAME`).",
)
add_command(recipes, "show", options.ShowOptions, command_of("recipes"), common=False)
app.add_typer(recipes, name="recipes")


@recipes.callback()
def _list_recipes(
    context: typer.Context, imports: Annotated[list[str] | None, IMPORT] = None
) -> None:
    """List the recipes with title, paper and the text columns that they need."""
    for plugin in imports or ():
        import_plugin(plugin)
    if context.invoked_subcommand is None:
        from opencse.commands.recipes import list_recipes

        show(list_recipes())


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        print_text(f"opencse {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; an error of the user is one line and exit code 2."""
    # Large pages for PyTorch's CPU memory, before it is first imported: about 9 % of a training
    # step's time.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    # Sleep at barriers instead of spinning; spinning threads starve other jobs on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        # An ASCII terminal shows other characters escaped, instead of ending the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    escape_messages_of_libraries()
    try:
        raise_interrupts()
        check_environment()
        status = app(prog_name="opencse", standalone_mode=False) or 0
        # typer returns this for Ctrl-C, without a message.
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(status)
    except OpencseError as error:
        _stop(str(error), 2)
    except Interrupted as stop:
        _stop(str(stop), INTERRUPTED)
    except (typer.Abort, KeyboardInterrupt):
        _stop("stopped", INTERRUPTED)
    # The reader of the output has stopped, such as `head`.
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
    except BaseException as error:
        # A panic of the tokenizers library is no Exception; its patterns give up after many attempts.
        if type(error).__name__ == "PanicException":
            _stop(f"the tokenizer of a model failed ({error_reason(error)}). Use another model.", 2)
        if not isinstance(error, Exception):
            raise
        # An error in the arguments; typer has its own copy of click, whose classes have no public
        # name.
        if not hasattr(error, "format_message"):
            cause = shortage(error) or odd_variable(error)
            if cause is not None:
                _stop(str(cause), 2)
            print_text("".join(traceback.format_exception(error)), error=True)
            _stop(
                f"an unexpected failure of opencse {__version__}. Please report it with the lines above",
                1,
            )
        # Without any argument, the help was printed already.
        elif not error.format_message().strip():
            sys.exit(2)
        else:
            context = getattr(error, "ctx", None)
            command = context.command_path if context is not None else "opencse"
            _stop(f"{error.format_message().rstrip('.')[:1000]}. See `{command} --help`.", 2)


def _stop(message: str, code: int) -> None:
    one_of_many = code == INTERRUPTED and os.environ.get("RANK", "0") != "0"
    # Ctrl-C reaches all processes, and the first one reports it.
    if not one_of_many:
        print_line(f"opencse: {' '.join(message.split())}")
    # If Ctrl-C came within `exec`, such as that of a dataclass, CPython would end this process by
    # the signal, and not with the exit code. Another `exec` makes it forget that.
    exec("")
    sys.exit(code)


# The last second of the year 9999; Python knows no later one.
_LAST_SECOND = 253402300799
_ENGINES = ("ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_MEGATRON_LM")
"""Variables by which accelerate hands training over to another engine, whose packages it then imports."""


def check_environment() -> None:
    """Check the variables that libraries read without a check, and whose values their errors don't show.

    Raises:
        OpencseError: `SOURCE_DATE_EPOCH` is no point of time, or a variable of accelerate asks for
            an engine or a device that is not supported.
    """
    for name, value in list(os.environ.items()):
        if name.startswith("ACCELERATE_") and not value.strip():
            # An empty one is as good as none, but accelerate reads it as a wrong value.
            del os.environ[name]
    completes = os.environ.get("_OPENCSE_COMPLETE", "")
    if completes and not {"COMP_WORDS", "_TYPER_COMPLETE_ARGS"} & set(os.environ):
        raise OpencseError(
            f"_OPENCSE_COMPLETE is {completes!r:.80}, as a shell sets it to complete a command, but "
            "there is no command to complete",
            "`unset _OPENCSE_COMPLETE`",
        )
    for name in _ENGINES:
        if os.environ.get(name, "false").lower() not in ("false", "0", "no", "off", "n", "f"):
            raise OpencseError(
                f"the environment variable {name} is set, but opencse trains without that engine",
                f"`unset {name}`",
            )
    if os.environ.get("ACCELERATE_TORCH_DEVICE", "").startswith("meta"):
        raise OpencseError(
            "the environment variable ACCELERATE_TORCH_DEVICE is meta, a device without numbers",
            "Use cpu, cuda, cuda:1, mps or xpu, or `unset ACCELERATE_TORCH_DEVICE`.",
        )
    given = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not (given.isascii() and given.isdecimal() and int(given[:20]) <= _LAST_SECOND):
        raise OpencseError(
            f"SOURCE_DATE_EPOCH is {given!r:.80}, not a number of seconds since 1970",
            "Correct it, or `unset SOURCE_DATE_EPOCH`.",
        )


def odd_variable(error: BaseException) -> OpencseError | None:
    """Return the user error for an environment variable with a value that a library cannot use; None for others.

    Such an error quotes the value, and the library's file that raised it names the variable.
    """
    text = str(error).lower()
    files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    of_accelerate = any("/accelerate/" in file for file in files)
    sources = []
    for file in files:
        with contextlib.suppress(OSError):
            sources.append(Path(file).read_text(encoding="utf-8", errors="replace"))
    for name, value in os.environ.items():
        if not value.strip() or value.lower() not in text:
            continue
        named = any(f'"{name}"' in source for source in sources)
        # accelerate puts the names of its variables together from parts.
        if named or (of_accelerate and name.startswith("ACCELERATE_")):
            return OpencseError(
                f"the environment variable {name} has the value {value!r:.80} ({error_reason(error)})",
                f"Correct it, or `unset {name}`.",
            )
    return None


def shortage(error: BaseException) -> OpencseError | None:
    """Return the user error for a machine that ran out of memory, disk, file handles or processes; None for others."""
    number = getattr(error, "errno", None)
    text = str(error).lower()
    if (
        isinstance(error, MemoryError)
        or number == errno.ENOMEM
        or any(part in text for part in (*_MEMORY, *_THREADS))
    ):
        return OpencseError(
            "the memory is full",
            "Use fewer sentences per step (--set training.batch_size=…) or fewer --workers.",
        )
    disk = disk_problem(error)
    if disk:
        return OpencseError(*disk)
    if number in (errno.EMFILE, errno.ENFILE) or "too many open files" in text:
        return OpencseError(
            "too many files are open", "Raise the limit, for example with `ulimit -n 4096`."
        )
    if os.environ.get("WORLD_SIZE", "1") != "1" and any(part in text for part in _PEER):
        return OpencseError(
            "another process of this run has ended or did not start",
            "See what it printed, then continue with --resume.",
        )
    return None
