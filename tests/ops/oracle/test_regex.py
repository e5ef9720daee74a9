"""Regular expressions on RE2 and on Python's re, side by side with TensorFlow."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab
from dtflab.ops.text import regex_ops

TEXTS = [b"", b"a", b"aXbX", b"abc abc", "ä b é".encode(), b"john smith", b"x\ny\n", b"1,22,333.5", b"aaab", b"AbC_9 -"]
BOTH = [
    (b"X", rb"[\0]"), (rb"(\w+) (\w+)", rb"\2 \1"), (b"b*", b"-"), (b"", b"-"), (b"|a", b"-"), (b".", b"x"),
    (b"b|c", b"$1"), (b"(a)|(b)", rb"<\1\2>"), (b"(?:(a)|b)*", rb"<\1>"), (rb"\s+", b"_"), (rb"^\s*|\s*$", b"|"),
    (b"$", b"!"), (b"(?m)$", b"!"), (b"(?m)^", b"!"), (b"(?s).+", b"."), (b"(?i)[a-b]+", rb"(\0)"), (rb"\bb", b"*"),
    (rb"\d{2,}?", b"#"), (rb"(\d+,)*\d+", rb"<\1>"), (rb"[^\w\s]", rb"\\"), (rb"[]a-]", b"+"), (rb"(?P<n>a+)b", rb"\1"),
    (rb"(a|ab)(c|bcd)?", rb"<\1,\2>"), (rb"\x61\.?", b"A"), ("[ä-é]".encode(), b"E"), (rb"\W", b"."), (rb"a{2}", b"AA"),
    (rb"(?:ab|a)+", b"_"), (rb"\A.", b"1"), (rb"{a}", b"?"),
]  # fmt: skip
RE2_ONLY = [
    (rb"\pN+", b"N"), (rb"c\z", b"."), (rb"\Qa.b\E|5", b"."), (b"[[:alpha:]]+", b"A"), (rb"\B", b"-"), (rb"\101", b"1"),
    (b"a{,3}", b"-"), (b"(a+)+b", rb"\1"), (b"(a|a)*b", b"-"), (b"(.*)*x", b"-"), (b"a*a*a*a*a*a*b", b"-"),
    (b"(a?){30}a{30}", b"-"), (b"(a*)*", b"-"), (b"x(?i)y", b"-"), (rb"\b*", b"-"), (rb"[a&&b]", b"-"),
]  # fmt: skip
INVALID = [
    b"(", b"a)", b"[a", b"*a", b"a**", b"x{2,1}", b"a{1001}", b"((a{100}){100}){100}", rb"(a)\1", b"(?=a)", b"(?!a)",
    rb"\pQ", rb"a\Z", b"a*+", b"(?>a)", b"\\", b"(?P=n)",
]  # fmt: skip


@pytest.fixture(params=["RE2", "re"])
def engine(request, monkeypatch):
    if request.param == "RE2":
        pytest.importorskip("re2")
    else:
        monkeypatch.setattr(regex_ops, "_re2", lambda: None)
    regex_ops._expression.cache_clear()
    yield request.param
    regex_ops._expression.cache_clear()


def results(tf, pattern, rewrite, texts):
    with tf.Graph().as_default(), tf.Session() as sess:
        made = [tf.regex_replace(texts, pattern, rewrite, everywhere) for everywhere in (True, False)]
        found = sess.run([*made, tf.strings.regex_full_match(texts, tf.constant(pattern))])
        return [one.tolist() for one in found]


@pytest.mark.parametrize(("pattern", "rewrite"), BOTH)
def test_both_engines_find_what_tensorflow_finds(engine, pattern, rewrite):
    texts = [text for text in TEXTS if text.isascii() or b"(?i)" not in pattern]
    assert results(dtflab, pattern, rewrite, texts) == results(real_tf, pattern, rewrite, texts)


@pytest.mark.parametrize(("pattern", "rewrite"), RE2_ONLY)
def test_what_only_re2_can_match_is_refused_without_it(engine, pattern, rewrite):
    texts = [*TEXTS, b"a" * 40]
    if engine == "RE2":
        assert results(dtflab, pattern, rewrite, texts) == results(real_tf, pattern, rewrite, texts)
    else:
        with pytest.raises(dtflab.errors.InvalidArgumentError, match=r"StaticRegexReplace can't match .* google-re2"):
            results(dtflab, pattern, rewrite, texts)


@pytest.mark.parametrize("pattern", [b"(a?)*", "(?m)((?:([ab])?|([\\d-]|[é-ü])))*".encode()])
def test_a_repeat_of_what_may_be_empty_is_refused_without_re2(engine, pattern):
    """The engines differ in what the last repeat has matched, even on texts that are short enough for any pattern."""
    if engine == "RE2":
        assert results(dtflab, pattern, rb"\1", [b"ab"]) == results(real_tf, pattern, rb"\1", [b"ab"])
    else:
        with pytest.raises(dtflab.errors.InvalidArgumentError, match="what is repeated may be empty"):
            results(dtflab, pattern, rb"\1", [b"ab"])


@pytest.mark.parametrize("text", [b"\xff", b"a\xc3b", "\u212a".encode(), b"\v"])
@pytest.mark.parametrize("pattern", [b"", b".", b"(?i)k", rb"[^\s]"])
def test_texts_that_the_engines_read_in_different_ways(engine, pattern, text):
    try:
        found = results(dtflab, pattern, b"-", [text])
    except dtflab.errors.InvalidArgumentError as error:
        assert engine == "re" and "google-re2" in error.message
    else:
        assert found == results(real_tf, pattern, b"-", [text])


@pytest.mark.parametrize("pattern", INVALID)
def test_invalid_patterns(engine, pattern):
    words = []
    for tf in (dtflab, real_tf):
        with tf.Graph().as_default(), tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(tf.strings.regex_full_match("a", tf.constant(pattern)))
        words.append(caught.value.message)
    mine, theirs = words
    if engine == "RE2":
        assert mine.splitlines()[0] in theirs
    else:
        assert mine.startswith("Invalid pattern: ") or "google-re2" in mine
