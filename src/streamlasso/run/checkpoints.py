"""What a checkpoint holds of a run, and which runs may continue from it.

All of it is of the same moment: outputs are on disk before the checkpoint is, and are cut back to it when a run
continues. So after a kill at any moment every row is there once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamlasso import __version__
from streamlasso.data.encoding.sparse_encoder import encoder_from
from streamlasso.report.state import summariser_from, summariser_state
from streamlasso.run.data import Data
from streamlasso.run.model_files import learning_of, load_model
from streamlasso.run.options import Options
from streamlasso.run.rows_read import RowsRead
from streamlasso.run.state import RunState

#: Of the notes about a run.
VERSION = 4


def save_run(path: Path, state: RunState, options: Options, data: Data, outputs: dict[str, Any] | None) -> None:
    """Write the model, what was seen last, and how far everything is. Without `outputs` no run can continue from it."""
    summary, arrays = summariser_state(state.summariser)
    notes = {
        "run": {
            "version": VERSION,
            "streamlasso": __version__,
            "options": options.learning(),
            "columns": data.columns,
            "first_row": data.fingerprint,
            "place": data.place(),
            "position": state.position,
            "n_rows": state.n_rows,
            "bad_cells": [data.bad_cells.n, data.bad_cells.examples],
            "outputs": outputs,
            "read": data.read.state(),
        },
        "encoder": state.encoder.state(),
        "learning": state.learning.state(),
        "summary": summary,
    }
    if state.learning.keys is not None:
        arrays |= state.learning.keys.arrays()
    state.learning.save(path, notes, arrays)


class SavedRun:
    """A run as it was saved.

    place : where its data are to be opened again; None if at their first row
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._estimator, self._notes, self._arrays = load_model(path)
        run = self._notes.get("run")
        if run is None or run["outputs"] is None:
            raise ValueError(f"{path} holds a model, but no run to continue: use another --checkpoint")
        self._run = run
        self.place: dict[str, Any] | None = run.get("place")

    def run(self, options: Options, data: Data) -> tuple[RunState, dict[str, Any]]:
        """The run, and the positions of its outputs."""
        notes, run = self._notes, self._run
        _refuse_other_run(self.path, run, options, data)
        encoder = encoder_from(notes["encoder"])
        learning = learning_of(encoder.target, self._estimator, notes["learning"])
        data.read = RowsRead(run.get("read"))
        if options.key is not None:
            learning.add_keys(options.max_keys, self._arrays)
        data.bad_cells.n, data.bad_cells.examples = run["bad_cells"]
        summariser = summariser_from(notes["summary"], self._arrays)
        return RunState(encoder, learning, summariser, run["position"], run["n_rows"]), run["outputs"]


def _refuse_other_run(path: Path, run: dict[str, Any], options: Options, data: Data) -> None:
    if run["version"] != VERSION:
        raise ValueError(f"{path} is of another version of streamlasso: start again with another --checkpoint")
    if run["columns"] != data.columns:
        changed = sorted(set(run["columns"]) ^ set(data.columns)) or ["the order"]
        raise ValueError(
            f"{path}: the run that it continues had other columns ({', '.join(changed[:5])}): use the same data, or "
            "another --checkpoint"
        )
    for name, value in options.learning().items():
        if run["options"].get(name) != value:
            raise ValueError(
                f"{path}: the run that it continues had --{name} {run['options'].get(name)}, not {value}: use the same "
                "options, or another --checkpoint"
            )
    if run.get("place") is None and run["first_row"] != data.fingerprint:
        raise ValueError(
            f"{path}: the run that it continues had another first row: use the same data, or another --checkpoint"
        )
