"""The command line: arguments -> calls. A new command is one more function in the list."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import Literal

from cyclopts import App, CycloptsError, Parameter

from streamlasso import __version__
from streamlasso._text import plain
from streamlasso.bench.cli import bench
from streamlasso.network.cli import network, replay
from streamlasso.reproduce.cli import reproduce
from streamlasso.run import cli as run_cli
from streamlasso.run.cli import demo, inspect, predict, run
from streamlasso.serve.cli import open_page, serve

#: Objects made between two collections.
FEWER_COLLECTIONS = 50_000

app = App(
    name="streamlasso",
    version=__version__,
    help="Sparse, self-tuning linear models on streams that keep changing.\n\n"
    "Start with: streamlasso demo\n\nThen: streamlasso run data.csv --target y",
    # Without --no-quiet, --empty-keep and the like.
    default_parameter=Parameter(negative=""),
)


run_cli.open_page = open_page


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit status: 0; 2 and one line on standard error if it cannot be done; 130 if interrupted."""
    # Imports make many objects that stay: to look for garbage as often as usual takes a tenth of a short run.
    gc.set_threshold(FEWER_COLLECTIONS)
    _prepare_terminal()
    try:
        command, bound, _ = app.parse_args(
            sys.argv[1:] if arguments is None else arguments, print_error=False, exit_on_error=False
        )
        status = command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        return _refuse(f"{error} See streamlasso --help.")
    except BrokenPipeError:
        # The reader has closed the pipe; what is left in the buffer must not be written again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, ImportError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        print("streamlasso: interrupted", file=sys.stderr)
        return 130
    return status if isinstance(status, int) else 0


def _prepare_terminal() -> None:
    """Print names that the terminal cannot show in escapes; and no table in a terminal without columns, which never
    ends."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not os.environ.get("COLUMNS", "1").strip("0 "):
        del os.environ["COLUMNS"]


def _refuse(words: str) -> int:
    print("streamlasso:", plain(" ".join(words.split())), file=sys.stderr)
    return 2


for command in (run, serve, predict, inspect, demo, network, replay, bench, reproduce):
    app.command(command)


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that completes commands and options in your shell.

    Example: streamlasso completion bash > ~/.local/share/bash-completion/completions/streamlasso

    Parameters
    ----------
    shell
        The shell.
    """
    print(app.generate_completion(prog_name="streamlasso", shell=shell))
