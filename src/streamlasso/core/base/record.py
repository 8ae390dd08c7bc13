# cython: language_level=3
"""What a step notes of a row: the fields, and the words for the last of them, how the step went."""

import cython
from cython.cimports.streamlasso.core.base.record import N_STATUSES, OK, SINGULAR, UNFINISHED, WAITING, Record


@cython.cfunc
def _fields():
    record: Record = Record(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    by_name: dict = record
    return tuple(by_name)


def _advice():
    advice = {
        OK: ("ok", "The model is the exact minimiser for its rows and lam."),
        SINGULAR: (
            "singular",
            "Some features are combinations of others to the last digits and lam is next to 0, so the solution is "
            "accurate to about six digits only: drop one of the duplicates, or let lam be larger.",
        ),
        UNFINISHED: (
            "unfinished",
            "The solver stopped before the minimiser, most often because none exists (classes that the features "
            "separate, with lam = 0): let lam be larger, or penalise all features.",
        ),
        WAITING: (
            "waiting",
            "There is nothing to fit yet: too few rows, or a response that has not changed. Learn more rows.",
        ),
    }
    return dict(advice[code] for code in range(N_STATUSES))


#: What `learn` notes of each row, in this order.
RECORD = _fields()
#: By status, in the order of their codes: what it means, and what to do.
ADVICE = _advice()
#: The statuses alone; the last field of a record is a place here.
STATUS = tuple(ADVICE)
