"""The run: rows are read, predicted, learnt and written down, and nothing of it is lost.

A checkpoint holds the model, what was seen last, how many rows were read, and how far every output was. All of it is
of the same moment: outputs are on the disk before the checkpoint is, and are cut back to it when a run continues. So
after a kill at any moment every row is there once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from streamlasso import RAPClassifier, RAPRegressor, __version__, checkpoint
from streamlasso.encoding import Encoder, detect_encoder
from streamlasso.encoding.encoder import Cells, Encoded
from streamlasso.encoding.reading import joined
from streamlasso.encoding.suggestions import refuse_unknown
from streamlasso.report.state import summariser_from, summariser_state
from streamlasso.report.summarise import Summariser
from streamlasso.report.summary import Summary
from streamlasso.run.interruption import Interruption
from streamlasso.run.learning import Learning, Taken
from streamlasso.run.live import Silence, View
from streamlasso.run.options import FINAL, TRACE, Options
from streamlasso.run.outputs import TraceFile, open_predictions, or_null
from streamlasso.sources import BadRows, open_source
from streamlasso.sources.base import Block, Source
from streamlasso.sources.opening import name_of

#: Rows that are encoded, learnt and written at a time: what a reader of the predictions waits for at most.
CHUNK = 256
#: Features beyond which a mixture takes gigabytes: it holds more than a hundred matrices of them.
MOST_MIXED = 1000
#: Of what a checkpoint says of a run.
VERSION = 1


class Run:
    """A run, at some row of its stream. `go` takes it to the end, `summary` says what there is then."""

    def __init__(self, options: Options, view: View | None = None) -> None:
        self.options, self.view = options, view or Silence()
        # Ragged lines are met again when a run continues; rows with unfit cells are not.
        self.ragged, self.unfit = BadRows(options.on_error), BadRows(options.on_error)
        self.source: Source = open_source(options.data, self.ragged)
        self.interruption = Interruption()
        self.position = 0
        self._blocks = named(options.data, self.source.blocks())
        self._first = self._first_rows()
        # A file that begins otherwise is another file.
        self._fingerprint = hashlib.sha256(repr(self._first[0].rows.slice(0, 1).to_pylist()).encode()).hexdigest()
        self.resumed = options.checkpoint is not None and options.checkpoint.exists()
        self._resume() if self.resumed else self._start()

    # --- the beginning ------------------------------------------------------------------------------------------------

    def _first_rows(self) -> list[Block]:
        """Enough rows to judge the columns by, or all there are."""
        first: list[Block] = []
        while sum(len(block.rows) for block in first) < self.source.n_first:
            block = next(self._blocks, None)
            if block is None:
                break
            first.append(block)
        if not first:
            raise ValueError(f"{self.options.data}: there are no rows in it")
        refuse_unknown("--target", self.options.target, self.source.columns)
        return first

    def _start(self) -> None:
        options = self.options
        first = joined([block.rows for block in self._first], self.source.n_first)
        columns = {"keep": options.keep, "drop": options.drop, "lags": options.lags, "time": options.time}
        self.encoder = detect_encoder(first, options.target, options.family, **columns)
        self._refuse_width()
        self.learning = Learning.start(self.encoder.target, options.settings(), self.encoder.features)
        self.summariser = Summariser()
        self.n_rows = 0
        self._make_outputs(None)

    def _refuse_width(self) -> None:
        n = len(self.encoder.features)
        if self.options.tuner == "mixture" and n > MOST_MIXED:
            raise ValueError(
                f"{n:,} features are more than the mixture can hold ({MOST_MIXED:,}); choose columns with --keep or "
                "--drop, or take --tuner logrms"
            )

    def _make_outputs(self, outputs: dict[str, int] | None) -> None:
        """Anew, or from where the checkpoint saw them; results of an earlier end do not outlive the beginning."""
        out = self.options.out
        out.mkdir(parents=True, exist_ok=True)
        said, traced = (None, None) if outputs is None else (outputs["predictions"], outputs["trace"])
        self.trace = TraceFile(out / TRACE, self._schema(), traced)
        try:
            self.predictions = open_predictions(self.options.predictions_path, said)
        except BaseException:
            self.close_trace()
            raise
        for name in FINAL:
            if not self.options.is_checkpoint(out / name):
                (out / name).unlink(missing_ok=True)

    def _schema(self) -> pyarrow.Schema:
        answer = pyarrow.string() if self.learning.classes else pyarrow.float64()
        fields = [("t", pyarrow.int64()), ("y", answer), ("prediction", answer)]
        if self.encoder.time is not None:
            fields.insert(1, ("time", _time_type(self.encoder.time_column)))
        if self.learning.classes:
            fields.append(("probability", pyarrow.float64()))
        numbers = ("loss", "baseline", "persistence", "slope", "lam", "lam_max", "n_active", "effective_size")
        fields += [(name, pyarrow.float64()) for name in numbers]
        return pyarrow.schema([*fields, ("status", pyarrow.string())])

    # --- rows ---------------------------------------------------------------------------------------------------------

    def go(self) -> bool:
        """Read to the end; False if the run was interrupted. Either way there is something to finish."""
        with self.interruption:
            try:
                for block in self._remaining():
                    cells = self.encoder.read(block.rows)
                    for part, first in self._chunks(cells):
                        self._take(part, block, first)
                        if self.interruption.came:
                            return False
            except KeyboardInterrupt:
                if not self.interruption.waiting:
                    raise
                return False
        return True

    def _remaining(self) -> Iterator[Block]:
        """The blocks, without the rows that were learnt before the run was interrupted."""
        skip, seen = self.position, 0
        blocks = iter(self._first)
        self._first = []
        while True:
            self.interruption.waiting = True
            block = next(blocks, None) or next(self._blocks, None)
            self.interruption.waiting = False
            if block is None:
                break
            n = len(block.rows)
            done = min(max(skip - seen, 0), n)
            seen += n
            if done < n:
                yield block.after(done)
        if seen < skip:
            raise ValueError(
                f"{self.options.data}: it has {seen:,} rows, fewer than the {skip:,} that the checkpoint "
                f"{self.options.checkpoint} has learnt; give the same data, or start anew without the checkpoint"
            )

    def _chunks(self, cells: Cells) -> Iterator[tuple[Cells, int]]:
        """Parts of a block, none of which goes beyond a checkpoint; with the place of the first row."""
        start = 0
        while start < len(cells):
            until_checkpoint = self.options.every - self.position % self.options.every
            stop = min(start + min(CHUNK, until_checkpoint), len(cells))
            yield cells.part(slice(start, stop)), start
            start = stop

    def _take(self, cells: Cells, block: Block, first: int) -> None:
        rows = self.encoder.encode(cells, complainer(self.unfit, self.options.data, block, first))
        self.position += len(cells)
        if len(rows.target):
            self._write(rows, self._learn(rows), block.place[first + rows.place])
        if self.options.checkpoint is not None and self.position % self.options.every == 0:
            self.save(self.options.checkpoint)

    def _learn(self, rows: Encoded) -> list[Taken]:
        """Piece by piece: features and classes appear, and stretches of the summary end, between two rows."""
        taken, start = [], 0
        classes = np.maximum.accumulate(rows.target) + 1 if self.learning.classes else np.zeros(len(rows.target), int)
        while start < len(rows.target):
            self.learning.widen(self.encoder.features[: rows.width[start]])
            self.learning.add_classes(int(classes[start]))
            same = (rows.width == rows.width[start]) & (classes <= self.learning.n_classes)
            stop = start + min(self.summariser.room, int(np.argmin(np.append(same[start:], False))))
            X = rows.X[start:stop, : rows.width[start]]
            piece = self.learning.take(X, rows.target[start:stop], rows.has_past[start:stop])
            taken.append(piece)
            moment = _moment(rows.time, stop - 1)
            self.summariser.add(piece.sums, piece.lam, X, self.n_rows, self.learning.snapshot, moment)
            self.summariser.status.update(piece.after["status"].tolist())
            self.n_rows += stop - start
            start = stop
        return taken

    # --- writing ------------------------------------------------------------------------------------------------------

    def _write(self, rows: Encoded, taken: list[Taken], place: np.ndarray) -> None:
        """The trace counts the rows that were read; predictions say which row of the data each is of."""
        n = len(rows.target)
        answers = [self.learning.predictions(piece.eta) for piece in taken]
        columns: dict[str, Any] = {"t": np.arange(self.n_rows - n, self.n_rows)}
        if rows.time is not None:
            columns["time"] = pyarrow.array(rows.time, self.trace.schema.field("time").type, from_pandas=True)
        columns["y"] = self._as_written(rows.target)
        columns["prediction"] = self._as_labels(np.concatenate([answer for answer, _ in answers]))
        if self.learning.classes:
            columns["probability"] = np.concatenate(
                [probability for _, probability in answers if probability is not None]
            )
        said = {"row": place, **{name: values for name, values in columns.items() if name != "t"}}
        self.predictions.write(pyarrow.RecordBatch.from_pydict({name: _arrow(values) for name, values in said.items()}))
        for name in ("loss", "baseline", "persistence"):
            columns[name] = np.concatenate([getattr(piece, name) for piece in taken])
        for name in taken[0].after:
            columns[name] = np.concatenate([piece.after[name] for piece in taken])
        arrays = [_arrow(columns[field.name]).cast(field.type) for field in self.trace.schema]
        self.trace.write(pyarrow.RecordBatch.from_arrays(arrays, schema=self.trace.schema))
        self._show()

    def _as_written(self, target: np.ndarray) -> Any:
        if not self.learning.classes:
            return target
        labels = np.array([*map(str, self.learning.labels), None], dtype=object)
        return pyarrow.array(labels[target], pyarrow.string())

    def _as_labels(self, answers: np.ndarray) -> Any:
        return pyarrow.array(list(map(str, answers)), pyarrow.string()) if self.learning.classes else answers

    def _show(self) -> None:
        loss, baseline = self.summariser.running_means(self.learning.family)
        snapshot = self.summariser.last_snapshot or self.learning.snapshot()
        self.view.show(
            self.n_rows,
            {
                "loss": f"{loss:.4g}",
                "running mean": f"{baseline:.4g}",
                "lam": f"{snapshot.lam[0]:.3g}",
                "active": f"{int(np.any(snapshot.coef != 0, axis=0).sum())} of {len(self.encoder.features)}",
                "memory": f"{snapshot.effective_size:,.0f} rows",
            },
        )

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def save(self, path: Path, *, to_continue: bool = True) -> None:
        """The run as it is, outputs first. What nobody continues from does not say how far they are."""
        self.predictions.settle()
        self.trace.settle()
        summary, arrays = summariser_state(self.summariser)
        outputs = {"predictions": self.predictions.position, "trace": self.trace.position}
        notes = {
            "run": {
                "version": VERSION,
                "streamlasso": __version__,
                "options": self.options.learning(),
                "columns": self.source.columns,
                "first_row": self._fingerprint,
                "position": self.position,
                "n_rows": self.n_rows,
                "unfit": [self.unfit.n, self.unfit.examples],
                "outputs": outputs if to_continue else None,
            },
            "encoder": self.encoder.state(),
            "learning": self.learning.state(),
            "summary": summary,
        }
        checkpoint.save(self.learning.estimator, path, notes, arrays)

    def _resume(self) -> None:
        path = self.options.checkpoint
        assert path is not None
        estimator, notes, arrays = checkpoint.load_with_notes([RAPRegressor, RAPClassifier], path)
        run = notes.get("run")
        if run is None or run["outputs"] is None:
            raise ValueError(f"{path}: it holds a model, but no run to continue; name another --checkpoint")
        self._check_same(path, run)
        self.encoder = Encoder.from_state(notes["encoder"])
        self.learning = Learning(self.encoder.target, estimator, notes["learning"])
        self.summariser = summariser_from(notes["summary"], arrays)
        self.position, self.n_rows = run["position"], run["n_rows"]
        self.unfit.n, self.unfit.examples = run["unfit"]
        self._make_outputs(run["outputs"])

    def _check_same(self, path: Path, run: dict[str, Any]) -> None:
        if run["version"] != VERSION:
            raise ValueError(f"{path}: of another version of streamlasso; start anew with another --checkpoint")
        if run["columns"] != self.source.columns:
            changed = sorted(set(run["columns"]) ^ set(self.source.columns)) or ["the order"]
            raise ValueError(
                f"{path}: the run that it continues had other columns ({', '.join(changed[:5])}); give the same data, "
                "or another --checkpoint"
            )
        for name, value in self.options.learning().items():
            if run["options"].get(name) != value:
                raise ValueError(
                    f"{path}: the run that it continues had --{name} {run['options'].get(name)}, not {value}; give the "
                    "same options, or another --checkpoint"
                )
        if run["first_row"] != self._fingerprint:
            raise ValueError(
                f"{path}: the run that it continues had another first row; give the same data, or another --checkpoint"
            )

    # --- the end ------------------------------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """The run so far, for tables, figures and reports."""
        learning = self.learning
        classes = learning.labels if learning.classes else None
        return self.summariser.summary(learning.snapshot(), self.encoder.features, classes, learning.family)

    @property
    def skipped(self) -> tuple[int, list[str]]:
        """Rows that were left out, and what was wrong with the first of them."""
        return self.ragged.n + self.unfit.n, [*self.ragged.examples, *self.unfit.examples]

    def disown(self) -> None:
        """The run has failed: nothing that it leaves looks whole."""
        self.predictions.disown()
        self.close_trace()

    def close_trace(self) -> None:
        """Only a checkpoint goes on from it."""
        if self.options.checkpoint is not None and self.options.checkpoint.exists():
            self.trace.close()
        else:
            self.trace.disown()


def named(data: str, blocks: Iterator[Block]) -> Iterator[Block]:
    """Errors of the source name the file."""
    try:
        yield from blocks
    except ValueError as error:
        raise ValueError(f"{name_of(data)}: {error}") from error


def complainer(bad_rows: BadRows, data: str, block: Block, start: int) -> Callable[[int, str], None]:
    """Complains of a row, counted from row `start` of a block, with the place where it stood."""
    return lambda i, words: bad_rows.add(f"{name_of(data)}: {block.where(start + i)}", words)


def _moment(time: np.ndarray | None, i: int) -> str:
    return "" if time is None or time[i] is None or time[i] != time[i] else str(time[i]).replace("T", " ")


def _time_type(column: Any) -> pyarrow.DataType:
    return column.arrow_type


def _arrow(values: Any) -> pyarrow.Array:
    return values if isinstance(values, pyarrow.Array) else or_null(values)
