"""Sources: many records at once are those that come one by one, with the same keys."""

from __future__ import annotations

import pytest

from dtflab.files.sources import Lines


@pytest.mark.parametrize("skipped", [0, 3])
@pytest.mark.parametrize("sizes", [[5, 993, 2, 1, 1500, 600], [3100]])
def test_many_lines_have_the_keys_of_single_ones(tmp_path, sizes, skipped):
    file = tmp_path / "lines.txt"
    file.write_bytes(b"".join(b"line %d\n" % n for n in range(3001)))
    name = str(file).encode()
    one, many = Lines(name, skipped), Lines(name, skipped)
    try:
        for size in sizes:
            keys, values = many.next_many(size)
            assert list(zip(keys, values, strict=True)) == [record for _ in range(size) if (record := one.next())]
        assert many.ended
    finally:
        one.close()
        many.close()
