"""Ops of readers and files mean something only where there are files."""

_KINDS = "TextLine FixedLengthRecord TFRecord WholeFile Identity".split()
_VERBS = "Read ReadUpTo NumRecordsProduced NumWorkUnitsCompleted SerializeState RestoreState Reset".split()
_READERS = [f"{kind}Reader" for kind in _KINDS] + [f"Reader{verb}" for verb in _VERBS]

IN_PROGRAMS = {
    **{name + family: "tests/ops/oracle/test_readers.py" for name in _READERS for family in ("", "V2")},
    **dict.fromkeys(("ReadFile", "WriteFile", "MatchingFiles"), "tests/files/oracle/test_files.py"),
}
