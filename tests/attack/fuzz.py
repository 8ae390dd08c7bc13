"""Coverage-guided fuzzing of what reads strangers' bytes: `make fuzz`. It needs atheris, for CPython on Linux.

python tests/attack/fuzz.py load|rows --seconds N: bytes that reach new lines of our code are kept and changed further.
What is read must be read, or refused by a ValueError; anything else stops the run, with the bytes in a file.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import atheris
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=["streamlasso", "safetensors"]):
    from streamlasso import RAPClassifier, RAPRegressor, compact
    from streamlasso.data.encoding import StreamEncoder
    from streamlasso.data.sources import BadRows, open_source

from attack.files import sealed

TEXTS = [
    b"a,b,y\n1,2,3\n4,5,6\n",
    b'a;b;y\n1,5;"x;y";3\n2,5;z;4\n',
    b"# a comment\na b y\n1 2 3\n",
    b"day\tload\ty\n2026-01-01\t5 kg\t(12.50)\n2026-01-02\t1,234\t7 %\n",
    b'{"a": 1, "b": {"c": "x"}, "y": 2.5}\n{"a": null, "b": {"c": "z"}, "y": 1e3}\n',
]


def checkpoints() -> list[bytes]:
    """Words and numbers, with a zero between them: JSON has none."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    models = RAPRegressor(tuner="logrms").fit(X, X[:, 0]), RAPClassifier(tuner="logrms").fit(X, X[:, 0] > 0)
    return [b"\0".join(map(bytes, compact._parts(model.to_bytes()))) for model in models]


def load(data: bytes) -> None:
    """A checkpoint is refused, or it is a model that predicts."""
    words, _, numbers = data.partition(b"\0")
    for kind in (RAPRegressor, RAPClassifier):
        try:
            model = kind.from_bytes(sealed(words, numbers))
        except ValueError:
            continue
        model.predict(np.zeros((1, model.n_features_in_)))


def rows(data: bytes) -> None:
    """A file is refused, or its rows are read and become features."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        Path(file.name).write_bytes(data)
        try:
            for block in open_source(file.name, BadRows("skip")).blocks():
                if block.rows.num_rows:
                    StreamEncoder().fit_transform(block.rows.to_pandas())
        except ValueError:
            pass


TARGETS = {"load": (load, checkpoints), "rows": (rows, lambda: TEXTS)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    given = parser.parse_args()
    attack, seeds = TARGETS[given.target]
    folder = Path("build", "fuzz", given.target)
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (folder / f"seed-{number}").write_bytes(seed)
    options = [
        f"-max_total_time={given.seconds}",
        f"-artifact_prefix={folder}/found-",
        "-rss_limit_mb=4096",
        "-timeout=20",
    ]
    atheris.Setup([sys.argv[0], *options, str(folder)], attack)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
