"""The run: rows are read, predicted, learnt and written down, and no row is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from streamlasso._files import remove_leftovers, sync_directory
from streamlasso._text import count, number
from streamlasso.data.encoding.encoder import Cells, Encoded
from streamlasso.data.sources.base import Block
from streamlasso.report.summary import Summary
from streamlasso.run.alarm import Alarm
from streamlasso.run.checkpoints import SavedRun, save_run
from streamlasso.run.data import CHUNK, Data
from streamlasso.run.interruption import Interruption
from streamlasso.run.learning import Outcomes
from streamlasso.run.options import FINAL, TRACE, Options
from streamlasso.run.prediction_files import PredictionFile, open_predictions
from streamlasso.run.prediction_topic import PredictionTopic
from streamlasso.run.rows import prediction_columns, prediction_rows, trace_rows, trace_schema
from streamlasso.run.state import RunState
from streamlasso.run.trace_file import TraceFile
from streamlasso.run.view import Quiet, View
from streamlasso.run.watching import Nobody, Watcher

#: Seconds between two checkpoints, at most, of a topic that keeps coming.
SECONDS = 60.0


class Run:
    """A run, at some row of its stream (`state`). `go` learns all rows, `summary` is the run so far."""

    def __init__(self, options: Options, view: View | None = None, watcher: Watcher | None = None) -> None:
        self.interruption = Interruption()
        self.view, self.watcher = view or Quiet(), watcher or Nobody()
        saved = SavedRun(options.checkpoint) if options.checkpoint is not None and options.checkpoint.exists() else None
        self.resumed = saved is not None
        self.data = Data(options.data, options.on_error, None if saved is None else saved.place)
        self.options = options = options.for_source(self.data.source)
        positions: dict[str, Any] = {}
        if not self.data.seeks:
            self.data.read_first()
        if saved is not None:
            self.state, positions = saved.run(options, self.data)
        else:
            self.state = RunState.start(self.data, options)
        self.saved = time.monotonic()
        self._open_outputs(positions)
        if not self.resumed and options.checkpoint is not None and (self.data.seeks or options.predictions_topic):
            # A run that is killed before its first checkpoint has to know from where it began.
            self.save(options.checkpoint)
        self.alarm = Alarm(options.alarm, self.state.learning.estimator, self.view)

    def _open_outputs(self, positions: dict[str, Any]) -> None:
        """New, or where the checkpoint left them. The files of an earlier run that was completed are deleted."""
        out = self.options.out
        out.mkdir(parents=True, exist_ok=True)
        sync_directory(out.parent)
        for path in self.options.outputs():
            remove_leftovers(path)
        schema = trace_schema(self.state.encoder, self.state.learning.also_predicted)
        self.trace = TraceFile(out / TRACE, schema, positions.get("trace"))
        try:
            self.predictions = self._open_predictions(positions.get("predictions"))
        except BaseException:
            self.close_trace()
            raise
        for name in FINAL:
            if not self.options.is_checkpoint(out / name):
                (out / name).unlink(missing_ok=True)

    def _open_predictions(self, position: Any) -> PredictionFile:
        topic = self.options.predictions_topic
        if topic is None:
            return open_predictions(self.options.predictions_path, position)
        return PredictionTopic(topic, self.options.run_name, position)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def go(self) -> bool:
        """Learn to the last row; False if it was interrupted, or ended by an alarm. It can be finished in any case."""
        with self.interruption:
            try:
                for block in self._remaining():
                    cells = self.state.encoder.read(block.rows)
                    for part, first in self._chunks(cells):
                        with self.watcher.turn():
                            self._learn(part, block, first)
                        if self.interruption.came or self.alarm.came:
                            return False
            except KeyboardInterrupt:
                if not self.interruption.waiting:
                    raise
                return False
        return True

    def _remaining(self) -> Iterator[Block]:
        """The blocks, without the rows that were read before the run was interrupted."""
        skip, seen, blocks = 0 if self.data.seeks else self.state.position, 0, self.data.blocks()
        while True:
            self.interruption.waiting = True
            block = next(blocks, None)
            self.interruption.waiting = False
            if block is None:
                break
            n = len(block.rows)
            done = min(max(skip - seen, 0), n)
            self._check_learnt(block.rows.slice(0, done))
            seen += n
            if done < n:
                yield block.after(done)
        if seen < skip:
            raise ValueError(
                f"{self.data.name} has {count(seen, 'row')}, fewer than the {skip:,} that the checkpoint "
                f"{self.options.checkpoint} has learnt: use the same data, or start again without the checkpoint"
            )

    def _check_learnt(self, rows: pyarrow.RecordBatch) -> None:
        """The rows that were learnt before the run was interrupted must be there again, as they were."""
        try:
            self.data.read.add(rows)
        except ValueError as error:
            raise ValueError(
                f"{self.data.name}: {error}, as the checkpoint {self.options.checkpoint} has it: use the same data, or "
                "start again without the checkpoint"
            ) from error

    def _chunks(self, cells: Cells) -> Iterator[tuple[Cells, int]]:
        """Parts of a block, each with its first row; a part ends where a checkpoint is due."""
        start, every = 0, self.options.every
        while start < len(cells):
            until_checkpoint = every - self.state.position % every
            stop = min(start + min(CHUNK, until_checkpoint), len(cells))
            yield cells.part(slice(start, stop)), start
            start = stop

    def _learn(self, cells: Cells, block: Block, first: int) -> None:
        rows = self.state.encoder.encode(cells, self.data.on_bad_row(block, first))
        self.state.position += len(cells)
        if self.options.checkpoint is not None:
            self.data.learnt(block, first, len(cells))
        if len(rows.target):
            outcomes = self.state.learn(rows)
            self._write(rows, outcomes, block.origins(first + rows.place))
            self.watcher.learnt(self, rows, outcomes)
            self._show()
            self.alarm.look()
        if self.options.checkpoint is not None and self._is_due():
            self.save(self.options.checkpoint)

    def _is_due(self) -> bool:
        """A checkpoint; by time too where rows do not stay for ever."""
        overdue = self.data.seeks and time.monotonic() - self.saved > SECONDS
        return overdue or self.state.position % self.options.every == 0

    def _write(self, rows: Encoded, outcomes: list[Outcomes], origins: dict[str, pyarrow.Array]) -> None:
        """Predictions have the place of a row in the data, the trace numbers the rows that could be read."""
        encoder, learning = self.state.encoder, self.state.learning
        made = [learning.predictions(piece.eta, encoder.target.n_first, piece.interval) for piece in outcomes]
        predictions = {name: np.concatenate([piece[name] for piece in made]) for name in made[0]}
        columns = prediction_columns(encoder, rows, predictions)
        self.predictions.write(prediction_rows(origins, columns))
        self.trace.write(trace_rows(self.trace.schema, self.state.n_rows - len(rows.target), columns, outcomes))

    def _show(self) -> None:
        loss, baseline = self.state.summariser.running_means(self.state.learning.family)
        snapshot = self.state.summariser.last_snapshot or self.state.learning.snapshot()
        numbers = {"loss": number(loss), "running mean": number(baseline), **self.state.learning.shown(snapshot)}
        if self.state.learning.keys is not None:
            numbers["keys"] = f"{len(self.state.learning.keys):,}"
        self.view.show(self.state.n_rows, numbers)

    # --- the end ------------------------------------------------------------------------------------------------------

    def save(self, path: Path, *, to_continue: bool = True) -> None:
        """The run as it is; the outputs are on disk first."""
        self.predictions.sync()
        self.trace.sync()
        positions = {"predictions": self.predictions.position, "trace": self.trace.position}
        save_run(path, self.state, self.options, self.data, positions if to_continue else None)
        if to_continue:
            self.data.saved()
            self.saved = time.monotonic()

    def summary(self) -> Summary:
        """The run so far, for tables, figures and reports."""
        return self.state.summary()

    def abandon(self) -> None:
        """After a failure: no file that the run leaves looks complete."""
        self.predictions.abandon()
        self.close_trace()

    def close_trace(self) -> None:
        """Only a run that continues from a checkpoint needs it."""
        if self.options.checkpoint is not None and self.options.checkpoint.exists():
            self.trace.close()
        else:
            self.trace.delete()
