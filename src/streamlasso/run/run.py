"""The run: rows are read, predicted, learnt and written down, and no row is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from streamlasso._files import remove_leftovers, sync_directory
from streamlasso._interruption import Interruption
from streamlasso._text import count, number
from streamlasso.data.encoding import Encoder, detect_encoder
from streamlasso.data.encoding.cells import Cells, Encoded
from streamlasso.data.encoding.reading import is_nested
from streamlasso.data.encoding.reading import keys as keys_in
from streamlasso.data.encoding.sparse.encoder import detect_sparse_encoder
from streamlasso.data.encoding.suggestions import refuse_unknown
from streamlasso.data.sources.base import Block
from streamlasso.model.outcomes import Outcomes
from streamlasso.model.start import is_wide, recorded, started, started_wide
from streamlasso.model.stream_model import StreamModel
from streamlasso.report.summarise import Snapshot
from streamlasso.report.summary import Summary
from streamlasso.run.alarm import Alarm
from streamlasso.run.data import CHUNK, Data
from streamlasso.run.options import FINAL, TRACE, Options
from streamlasso.run.outputs.files import ParquetFile, PredictionFile, open_predictions
from streamlasso.run.outputs.rows import prediction_columns, prediction_rows, trace_rows, trace_schema
from streamlasso.run.outputs.topic import PredictionTopic
from streamlasso.run.saved import SavedModel, save_run
from streamlasso.run.terminal import Terminal

#: Seconds between two checkpoints, at most, of a topic that keeps coming.
SECONDS = 60.0
#: Of so many first rows, or more, keys that are more than this share of them are noted.
ENOUGH_ROWS, MOSTLY_DIFFERENT = 30, 0.5


class Watcher:
    """Sees rows that were learnt, and looks at the model between them. This one watches nothing."""

    def turn(self) -> AbstractContextManager[None]:
        """Within it the run changes its model; a watcher looks at other times."""
        return nullcontext()

    def learnt(self, run: Run, rows: Encoded, outcomes: list[Outcomes]) -> None:
        """These rows were learnt just now."""

    def begins(self, run: Run) -> list[str]:
        """What is printed at the start; a ValueError if the run cannot be watched."""
        return []

    def stay(self) -> None:
        """The run has come to its end: wait as long as somebody may want to look."""


class Run:
    """A run, at some row of its stream. `go` learns all rows, `summary` is the run so far.

    position, n_rows : rows of the data that were read, and rows that were predicted
    """

    def __init__(self, options: Options, view: Terminal | None = None, watcher: Watcher | None = None) -> None:
        self.interruption = Interruption()
        self.view, self.watcher = view or Terminal(quiet=True), watcher or Watcher()
        path = options.checkpoint
        saved = SavedModel(path) if path is not None and path.exists() else None
        self.resumed = saved is not None
        self.data = Data(options.data, options.on_error, None if saved is None else saved.place())
        self.options = options = options.for_source(self.data.source)
        self.position, positions = 0, dict[str, Any]()
        if not self.data.seeks:
            self.data.read_first()
        if saved is not None:
            self.model, self.position, positions = saved.continued(options, self.data)
        else:
            self.model = recorded(model_for(self.data, options))
        self.saved = time.monotonic()
        self._open_outputs(positions)
        if not self.resumed and path is not None and (self.data.seeks or options.predictions_topic):
            # A run that is killed before its first checkpoint has to know from where it began.
            self.save(path)
        self.alarm = Alarm(options.alarm, self.model.estimator, self.view)

    @property
    def n_rows(self) -> int:
        assert self.model.record is not None
        return self.model.record.n_rows

    @property
    def last_snapshot(self) -> Snapshot | None:
        assert self.model.record is not None
        return self.model.record.last_snapshot

    def _open_outputs(self, positions: dict[str, Any]) -> None:
        """New, or where the checkpoint left them. The files of an earlier run that was completed are deleted."""
        out = self.options.out
        out.mkdir(parents=True, exist_ok=True)
        sync_directory(out.parent)
        for path in self.options.outputs():
            remove_leftovers(path)
        keep = self.options.checkpoint is not None
        self.trace_schema = trace_schema(self.model.encoder, self.model.also_predicted)
        self.trace = ParquetFile(out / TRACE, positions.get("trace"), keep)
        try:
            self.predictions = self._open_predictions(positions.get("predictions"), keep)
        except BaseException:
            self.trace.abandon()
            raise
        for name in FINAL:
            if not self.options.is_checkpoint(out / name):
                (out / name).unlink(missing_ok=True)

    def _open_predictions(self, position: Any, keep: bool) -> PredictionFile:
        topic = self.options.predictions_topic
        if topic is None:
            return open_predictions(self.options.predictions_path, position, keep)
        return PredictionTopic(topic, self.options.run_name, position)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def go(self) -> bool:
        """Learn to the last row; False if it was interrupted, or ended by an alarm. It can be finished in any case."""
        with self.interruption:
            try:
                for block in self._remaining():
                    cells = self.model.encoder.read(block.rows)
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
        skip, seen, blocks = 0 if self.data.seeks else self.position, 0, self.data.blocks()
        while True:
            self.interruption.waiting = True
            block = next(blocks, None)
            self.interruption.waiting = False
            if block is None:
                break
            n = len(block.rows)
            done = min(max(skip - seen, 0), n)
            if done:
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
            until_checkpoint = every - self.position % every
            stop = min(start + min(CHUNK, until_checkpoint), len(cells))
            yield cells.part(slice(start, stop)), start
            start = stop

    def _learn(self, cells: Cells, block: Block, first: int) -> None:
        rows = self.model.encoder.encode(cells, self.data.on_bad_row(block, first))
        self.position += len(cells)
        if self.options.checkpoint is not None:
            self.data.learnt(block, first, len(cells))
        if len(rows.target):
            outcomes = self.model.learn(rows)
            self._write(rows, outcomes, block.origins(first + rows.place))
            self.watcher.learnt(self, rows, outcomes)
            self._show()
            self.alarm.look()
        if self.options.checkpoint is not None and self._is_due():
            self.save(self.options.checkpoint)

    def _is_due(self) -> bool:
        """A checkpoint; by time too where rows do not stay for ever."""
        overdue = self.data.seeks and time.monotonic() - self.saved > SECONDS
        return overdue or self.position % self.options.every == 0

    def _write(self, rows: Encoded, outcomes: list[Outcomes], origins: dict[str, pyarrow.Array]) -> None:
        """Predictions have the place of a row in the data, the trace numbers the rows that could be read."""
        encoder, n_listed = self.model.encoder, self.model.target.n_first
        made = [self.model.predictions(piece.eta, n_listed, piece.interval) for piece in outcomes]
        predictions = {name: np.concatenate([piece[name] for piece in made]) for name in made[0]}
        columns = prediction_columns(encoder, rows, predictions)
        self.predictions.write(prediction_rows(origins, columns))
        self.trace.write(trace_rows(self.trace_schema, self.n_rows - len(rows.target), columns, outcomes))

    def _show(self) -> None:
        assert self.model.record is not None
        loss, baseline = self.model.record.running_means(self.model.family)
        now = self.last_snapshot or self.model.snapshot()
        numbers = {"loss": number(loss), "running mean": number(baseline)}
        if not np.isnan(now.lam[0]):
            numbers |= {"lam": number(now.lam[0]), "memory": f"{now.effective_size:,.0f} rows"}
        numbers["active"] = f"{now.n_active.max():,.0f} of {now.n_features or now.coef.shape[1]:,}"
        if self.model.keys is not None:
            numbers["keys"] = f"{len(self.model.keys):,}"
        self.view.show(self.n_rows, numbers)

    # --- the end ------------------------------------------------------------------------------------------------------

    def save(self, path: Path, *, to_continue: bool = True) -> None:
        """The run as it is; the outputs are on disk first."""
        self.predictions.sync()
        self.trace.sync()
        positions = {"predictions": self.predictions.position, "trace": self.trace.position}
        save_run(path, self.model, self.position, self.options, self.data, positions if to_continue else None)
        if to_continue:
            self.data.saved()
            self.saved = time.monotonic()

    def summary(self) -> Summary:
        """The run so far, for tables, figures and reports."""
        return self.model.summary()

    def abandon(self) -> None:
        """After a failure: no file that the run leaves looks complete."""
        self.predictions.abandon()
        self.trace.abandon()


# --- before the first row ---------------------------------------------------------------------------------------------


def model_for(data: Data, options: Options) -> StreamModel:
    """The model that the first rows, and the options, ask for."""
    refuse_unknown("--target", options.target, data.columns)
    rows, how = data.first_rows(), {"decimal_comma": data.decimal_comma, **options.columns()}
    if options.key is not None:
        refuse_unknown("--key", options.key, data.columns)
        if is_nested(rows[options.key]):
            kind = rows[options.key].type
            raise ValueError(f"--key {options.key} holds {kind}, not text or numbers: use another column")
    for name in options.text:
        refuse_unknown("--text", name, data.columns)
    encoder: Encoder
    if options.sparse:
        weight = getattr(data.source, "weight", None)
        encoder = detect_sparse_encoder(rows, options.target, options.family, options.sparse_columns(), weight, **how)
    else:
        encoder = detect_encoder(rows, options.target, options.family, **how)
    learning: dict[str, Any] = {"competes": options.lags is None and options.key is None, "coverage": options.coverage}
    if options.sparse or (options.may_be_wide and is_wide(encoder, rows)):
        # Names that somebody chose before the first row was there do not collide.
        return started_wide(encoder, bytes.fromhex(data.fingerprint)[:16], **learning)
    model = started(encoder, options.settings(), **learning)
    if options.key is not None:
        model.add_keys(options.max_keys)
        encoder.notes += _rare_keys(options.key, rows)
    return model


def _rare_keys(key: str, rows: pyarrow.RecordBatch) -> list[str]:
    """A note where most keys have one row only."""
    n_keys, n_rows = len(set(keys_in(rows[key]))), rows.num_rows
    if n_rows < ENOUGH_ROWS or n_keys <= MOSTLY_DIFFERENT * n_rows:
        return []
    return [f"--key {key} has {n_keys:,} keys in the first {n_rows:,} rows: a model of so few rows has little to learn"]
