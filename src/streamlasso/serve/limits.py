"""Limits of what the service accepts. Beyond them a request is refused; nothing is learnt from it."""

from __future__ import annotations

#: A name that a model may have: it is part of addresses.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

# --- a request ---
#: Bytes of the address and headers of a request, and of all bodies that are being received or wait, in bodies of the
#: largest size.
MOST_HEAD_BYTES, MOST_BODIES = 32_768, 4
#: Requests that wait for one kind of work.
MOST_QUEUED = 2_000
#: Clients whose pace is remembered, and wrong tokens of an address within a minute.
MOST_CLIENTS, MOST_WRONG_TOKENS = 10_000, 20
#: Listeners of /events, and events that are kept for each.
MOST_LISTENERS, MOST_EVENTS = 100, 1_000

# --- rows ---
#: Rows of a request, of a stream, and of one step of learning or predicting.
MOST_ROWS, MOST_STREAMED, MOST_TOGETHER = 10_000, 1_000_000, 2_048
#: Features of a row by name, which are also those of a model.
MOST_NAMES = 1_000
#: Values of a request, and numbers of its rows once they are encoded.
MOST_VALUES, MOST_CELLS = 500_000, 4_000_000
#: Characters of a value, of a feature's name and of an id; bytes of a line of a stream.
LONGEST_TEXT, LONGEST_NAME, LONGEST_ID, LONGEST_LINE = 10_000, 1_000, 200, 1_000_000
#: The size of a number: the model takes no larger ones.
LARGEST_NUMBER, LARGEST_INTEGER = 1e60, 2**63 - 1

# --- models ---
#: Models of a service, and rows of a `Window`, which are kept.
MOST_MODELS, LONGEST_WINDOW = 10_000, 1_000_000
#: Lags of a column, and how far back they go.
MOST_LAGS, LONGEST_LAG = 100, 10_000
#: Rows that wait for their labels, and seconds of any setting.
MOST_WAITING, MOST_SECONDS = 10_000_000, 1e9
