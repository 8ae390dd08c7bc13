"""The hypothesis that there is nothing to learn: the mean of all rows."""

#: Of the group before the first row.
PRIOR = 0.2


def join(parts):
    """The empty model of the longest memory, alone; a memory that was given has no rival."""
    if parts.restarts and parts.tuner.competes and len(parts.experts[0].powers) > 1:
        if parts.experts[0].first_is_empty:
            parts.group("nothing", 0, 1, PRIOR, carries=False)
