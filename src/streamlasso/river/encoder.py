"""The encoder of `run`, for one row at a time."""

from collections.abc import Hashable
from typing import Any

from river import base


class StreamEncoder(base.Transformer):
    """Numbers, text, dates and missing values as features, as `streamlasso run` encodes them.

    A number is a feature; text is one feature per level, up to 30; a date is calendar features. A value that is missing
    (None, NaN, or the name is absent) is replaced by the last one before it, and a feature marks it. The type of a
    value says what it is: text stays text, also where it has digits. What dates give depends on how far they are apart,
    so their features settle within the first 128 rows, and text that differs in nearly every row is then left out.

    A level, or a name, has features from the first row that is learnt with it. A row with text where there were
    numbers is refused, and changes nothing. A row takes a third of a millisecond, most of it for its conversion.

    Examples
    --------
    >>> from streamlasso.river import RAPRegressor, StreamEncoder
    >>> encoder = StreamEncoder()
    >>> encoder.learn_one({"city": "Rome", "heat": 31.0})
    >>> encoder.transform_one({"city": "Oslo", "heat": None})
    {'city = Rome': 0.0, 'heat': 31.0}
    >>> encoder.learn_one({"city": "Oslo", "heat": None})
    >>> encoder.transform_one({"city": "Oslo", "heat": 4.0})
    {'city = Rome': 0.0, 'city = Oslo': 1.0, 'heat': 4.0, 'heat missing': 0.0}
    >>> model = StreamEncoder() | RAPRegressor()
    >>> model.learn_one({"city": "Rome", "heat": 31.0}, 2.0)
    """

    def __init__(self) -> None:
        from streamlasso.data.encoding.row_encoder import RowEncoder

        self._rows = RowEncoder()

    def learn_one(self, x: dict[Any, Any]) -> None:
        """Learn a row: its levels, and the last value of each name."""
        self._rows.learn(x)

    def transform_one(self, x: dict[Any, Any]) -> dict[Hashable, Any]:
        """The features of a row that follows the last one learnt; or of that one, if it is given again."""
        features: dict[Hashable, Any] = dict(self._rows.features(x).items())
        return features
