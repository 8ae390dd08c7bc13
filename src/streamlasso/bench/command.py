"""`streamlasso bench FILE`: the comparison of all methods on one stream, as files and as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamlasso._files import make_directory, write_whole
from streamlasso._jobs import refuse_processes
from streamlasso._terminal import warn
from streamlasso.bench.entries import GROUPS, METHODS, PEERS
from streamlasso.bench.figures import draw_streams
from streamlasso.bench.leaderboard import refuse_unknown, run_leaderboard
from streamlasso.bench.stream_file import ROWS, StreamFile, read_task
from streamlasso.bench.summary import summary
from streamlasso.report.page import write_figure

#: Seconds of CPU time for one setting of one method, on ROWS rows.
LIMIT = 60.0


def compare(
    file: StreamFile,
    out: Path,
    methods: Sequence[str] | None = None,
    jobs: int = 1,
    peers: str = "quick",
    defaults_only: bool = False,
) -> str:
    """Run every method on the stream: `out`/leaderboard.csv, summary.md, comparison.png and .svg; the summary.

    An interrupted comparison continues from leaderboard.csv.
    """
    refuse_unknown(methods or (), METHODS, "methods")
    refuse_processes(jobs)
    task, notes = read_task(file)
    for note in notes:
        warn(note)
    make_directory(out)
    limit = LIMIT * max(len(task.y) / ROWS, 1)
    table = run_leaderboard(
        [task],
        out,
        methods=methods,
        peers=peers,
        defaults_only=defaults_only,
        limit=limit,
        jobs=jobs,
        progress=True,
    )
    if not table.num_rows:
        raise ValueError(f"--methods {','.join(methods or ())}: none of them can predict a {task.family} target")
    write_figure(out / "comparison", draw_streams(table))
    text = summary(table, [*_unable(task.family, methods or GROUPS[peers]), *notes[1:]])
    write_whole(out / "summary.md", text.encode())
    return text


def _unable(family: str, methods: Sequence[str]) -> list[str]:
    """A note about the methods that have no such family."""
    unable = [method for method in methods if method in PEERS and family not in PEERS[method][1]]
    return [f"Not for a {family} target: {', '.join(unable)}."] if unable else []
