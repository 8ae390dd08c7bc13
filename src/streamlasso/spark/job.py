"""What all pages of a job share; it travels from the driver to the workers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from streamlasso.compact import HEADER, START, other_format, to_bytes
from streamlasso.estimators import RAPClassifier, RAPRegressor
from streamlasso.estimators.multiclass import best_class, losses_of, probabilities, targets_of
from streamlasso.families import Binomial, Family
from streamlasso.keyed import KeyedClassifier, KeyedRegressor
from streamlasso.keyed.estimators import Keyed
from streamlasso.keyed.models import Models

#: Of the state of a page.
FORMAT = 2
#: A page is read and written whole: beyond this a batch waits for a few keys, and Spark's own limits are near.
MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Job:
    """Settings.

    classes : by the text that Spark has for them, or None
    wait_ms : how long a row waits for its label, or None
    """

    model: RAPRegressor | RAPClassifier
    features: tuple[str, ...]
    classes: dict[str, Any] | None = None
    pages: int = 4096
    wait_ms: int | None = None
    most_bytes: int = MOST_BYTES

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    # --- models -----------------------------------------------------------------------------------------------------

    def no_models(self) -> Keyed:
        """For the models of one page after the other."""
        keyed = self.kind(self.model, pooled=False)
        # A row of weight 0 is checked like any other, and not learnt.
        classes = None if self.classes is None else list(self.classes.values())
        target = [1.0] if classes is None else classes[:1]
        keyed._learn(np.zeros((1, len(self.features))), target, ["none"], [0.0], classes)
        learners = keyed.pooled.learners_
        # Spark gives a task one core.
        keyed._models = Models(learners[0], len(learners), None, n_workers=1)
        return keyed

    @property
    def kind(self) -> type[KeyedRegressor | KeyedClassifier]:
        return KeyedRegressor if self.classes is None else KeyedClassifier

    @cached_property
    def family(self) -> Family:
        learners = self.no_models().pooled.learners_
        return learners[0].settings["family"]

    @cached_property
    def n_learners(self) -> int:
        return len(self.targets(np.zeros(1)))

    # --- numbers ----------------------------------------------------------------------------------------------------

    @cached_property
    def place(self) -> dict[str, int]:
        """The place of each class among all, as scikit-learn sorts them."""
        assert self.classes is not None
        in_order = np.unique(list(self.classes.values())).tolist()
        return {text: in_order.index(value) for text, value in self.classes.items()}

    @cached_property
    def text(self) -> list[str]:
        """The text of each class, by its place."""
        return sorted(self.place, key=self.place.__getitem__)

    def targets(self, y: np.ndarray) -> list[np.ndarray]:
        """What each learner learns, from numbers or from the places of classes."""
        return [y] if self.classes is None else targets_of(y.astype(int), len(self.classes))

    def predictions(self, eta: np.ndarray) -> tuple[list[Any], list[Any] | None]:
        """Means; of classes the most probable, and the probability of each."""
        if self.classes is None:
            return self.family.means(np.ascontiguousarray(eta[:, 0])).tolist(), None
        chosen = [self.text[place] for place in best_class(eta)]
        return chosen, probabilities(Binomial().mean(eta)).tolist()

    def losses(self, y: np.ndarray, eta: np.ndarray) -> np.ndarray:
        return losses_of(self.family, self.targets(y), np.ascontiguousarray(eta))

    # --- is a state of this job? --------------------------------------------------------------------------------------

    @cached_property
    def settings(self) -> str:
        """What a page must have been made with, as JSON."""
        pooled = to_bytes(self.no_models().pooled)
        made_of, _, _, _ = HEADER.unpack_from(pooled, START.size)
        return json.dumps(
            {
                "format": FORMAT,
                "pages": self.pages,
                "features": self.features,
                "classes": None if self.classes is None else self.text,
                "model": repr(clone(self.model)),
                "hash": made_of.hex(),
            }
        )

    def refuse_other(self, settings: str) -> None:
        """A ValueError if a page was made with other settings than these."""
        if settings == self.settings:
            return
        theirs, ours = json.loads(settings), json.loads(self.settings)
        if not isinstance(theirs, dict) or not theirs.keys() >= ours.keys() or type(theirs["format"]) is not int:
            raise ValueError("the checkpoint holds the state of something else. No row of this batch was learnt.")
        if theirs["format"] != FORMAT:
            raise ValueError(
                f"the checkpoint is of format {theirs['format']}; this streamlasso reads {FORMAT}. "
                f"{other_format(theirs['format'], FORMAT)}"
            )
        # Other words for the same model have the same hash.
        words = ("pages", "features", "classes", *(("model",) if theirs["hash"] != ours["hash"] else ()))
        for name in words:
            if name == "model" or theirs[name] != ours[name]:
                raise ValueError(
                    f"{name}={ours[name]!r}, but the checkpoint was started with {name}={theirs[name]!r}: use that, or "
                    "a new checkpoint. No row of this batch was learnt."
                )
