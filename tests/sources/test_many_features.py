"""svmlight and Vowpal Wabbit's text: what is taken for them, and what their lines hold."""

import io

import pytest

from streamlasso.data.encoding.sparse.columns import Namespaces, Pairs, Words
from streamlasso.data.sources import BadRows
from streamlasso.data.sources.delimited import Delimited
from streamlasso.data.sources.opening import SOURCES
from streamlasso.data.sources.svmlight import Svmlight
from streamlasso.data.sources.vowpal import Vowpal

TEXTS = {
    b"1 3:0.5 17:2\n": Svmlight,
    b"# made by\n-1 1:1\n": Svmlight,
    b"1 qid:3 1:0.25 2:1 # docid\n0 2:1\n": Svmlight,
    b"3\n2 9:1e-3\n": Svmlight,
    b"1 |f a b c\n": Vowpal,
    b"0 1 0.5 'tag| price:.23 sqft:.25\n": Vowpal,
    b"1.5 second_house| price:.18\n": Vowpal,
    b"| a b\n| c d\n": Vowpal,
    b"a|b|c\n1|2|3\n": Delimited,
    b"1|2|3\n4|5|6\n": Delimited,
    b"| a | b |\n|---|---|\n": Delimited,
    b"x y\n1 12:30\n": Delimited,
    b"5\n6\n": Delimited,
    b"1 2 3\n4 5 6\n": Delimited,
    b"1,3:0\n": Delimited,
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_content_says_what_it_is(text):
    assert next(source for source in SOURCES if source.recognises(text)) is TEXTS[text]


def rows(source, text):
    found = [block.rows.to_pylist() for block in source(io.BytesIO(text), BadRows()).blocks()]
    return [row for block in found for row in block]


def test_lines_of_svmlight():
    text = b"\xef\xbb\xbf# head\n1 3:0.5\t17:2 # note\n\n-1 qid:7 2:1\r\n0"
    assert rows(Svmlight, text) == [
        {"label": "1", "features": "3:0.5 17:2"},
        {"label": "-1", "features": "2:1"},
        {"label": "0", "features": ""},
    ]
    where = [block.where(i) for block in Svmlight(io.BytesIO(text), BadRows()).blocks() for i in range(len(block.rows))]
    assert where == ["line 2", "line 4", "line 5"]


def test_lines_of_vowpal_wabbit():
    text = b"1 2 'tag|a x:2 |b y\n0.5 | x\n|a x\n-1 0.5 tag|a\n1 1 0.3 |a x\n"
    assert [(row["label"], row["weight"], row["features"]) for row in rows(Vowpal, text)] == [
        ("1", "2", "|a x:2 |b y"),
        ("0.5", None, "| x"),
        (None, None, "|a x"),
        ("-1", "0.5", "|a"),
        ("1", "1 0.3", "|a x"),
    ]


def test_features_of_vowpal_wabbit_have_the_weights_that_it_gives_them():
    vowpalwabbit = pytest.importorskip("vowpalwabbit")
    vw = vowpalwabbit.Workspace("--quiet --noconstant -b 18")
    for line in ("|user:2 tom age:0.5 | rain |b x:3 x:-1", "|a a:1e-2 b:5 c", "| 3:4 5"):
        example = vw.parse(f"1 {line}")
        expected = sorted(value for _, value in example.iter_features())
        vw.finish_example(example)
        read = Namespaces("features").features(line)
        # What is there twice is one feature here, the sum; there, the same weight learns from both.
        if "x:3 x:-1" in line:
            expected = sorted([*(value for value in expected if value not in (3.0, -1.0)), 2.0])
        assert sorted(read.values()) == pytest.approx(expected)
    vw.finish()


@pytest.mark.parametrize("cell", ["| a:", "| a:nan", "|n:x a", "| :1", "| a:1_0"])
def test_features_that_are_no_features_are_refused(cell):
    assert isinstance(Namespaces("features").features(cell), str)


def test_names_of_indices_do_not_depend_on_how_they_are_written():
    assert Pairs("features").features("007:1 0:2") == {"7": 1.0, "0": 2.0}


def test_letters():
    assert list(Words("x", ngrams="char3-4").features("A b")) == [" a ", "a b", " b ", " a b", "a b "]


def test_a_cell_without_words_has_no_features():
    assert Words("x").read(["", None, "!"]) == [{}, {}, {}]
