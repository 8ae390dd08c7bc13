"""The detector of changes, for any sequence of numbers."""

from river import base

from streamlasso.core.dict_rows import number
from streamlasso.core.monitor.detector import Changes
from streamlasso.settings import positive_false_alarms


class ChangeDetector(base.DriftDetector):
    """Finds changes of the mean or of the spread in a sequence of numbers, of any scale and with any tails.

    It fits wherever river takes a drift detector, such as `drift.ADWIN`: on losses, errors, or a measurement. It is
    what finds `changes_` in a model, without features (docs/changes.md).

    Parameters
    ----------
    false_alarms : float, default=1.0
        How readily a change is found: alarms per 10,000 numbers where nothing changes.

    Attributes
    ----------
    drift_detected : bool
        Whether the last number raised an alarm.
    change : int or None
        The number with which the last change most likely began, counted from 0.

    Examples
    --------
    >>> import random
    >>> from streamlasso.river import ChangeDetector
    >>> rng = random.Random(1)
    >>> detector = ChangeDetector()
    >>> for t in range(2000):
    ...     detector.update(rng.gauss(0, 1) if t < 1000 else rng.gauss(1, 1))
    ...     if detector.drift_detected:
    ...         print(f"found at {t}, began at {detector.change}")
    found at 1018, began at 999
    """

    def __init__(self, false_alarms: float = 1.0) -> None:
        super().__init__()
        self.false_alarms = false_alarms
        self._changes = Changes(0, None, positive_false_alarms(false_alarms))

    def _reset(self) -> None:
        super()._reset()
        self._changes = Changes(0, None, positive_false_alarms(self.false_alarms))

    def update(self, x: float) -> None:
        """The next number."""
        self._drift_detected = self._changes.update(number("x", x))

    @property
    def change(self) -> int | None:
        found = self._changes.list()
        return found[-1].row if found else None
