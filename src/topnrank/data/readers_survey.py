"""A quick look at all bytes of a text in columns: may Arrow read its ids as integers, and are there quotes?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from topnrank.data.readers_files import DataFile

_BLOCK_BYTES = 1 << 18
"""Small enough for the cache: each block is looked at several times."""
_NEWLINE, _RETURN, _ZERO, _POINT = b"\n\r0."
_SIGNS = (b"+", b"-", b" ", b"\t")
"""What plain integers do not begin or end with; the blanks are those that Arrow passes over in numbers."""


@dataclass(frozen=True)
class Survey:
    """What stands in the lines after the header."""

    quotes: int
    lines: int
    """Counted only where there are quotes."""
    plain: bool
    """Whether no field begins or ends unlike an integer: with a sign, a blank, or a zero before further characters. Then
    a column that Arrow reads as integers holds nothing but integers written as they print."""


def survey(file: DataFile, header_lines: int, separator: bytes) -> Survey:
    """Looks at the whole of `file`; `separator` is one byte."""
    quoted, plain, before = False, True, b"\n"
    for block in _blocks(file, header_lines):
        quoted = quoted or b'"' in block
        if quoted:
            return Survey(*_count_quotes_and_lines(file, header_lines), plain=False)
        text = before + block
        plain = plain and _is_plain(text, separator)
        before = text[-2:]
    return Survey(0, 0, plain and _is_plain(before + b"\n", separator))


def _blocks(file: DataFile, header_lines: int) -> Iterator[bytes]:
    with file.open_lines() as stream:
        for _ in range(header_lines):
            stream.readline()
        while block := stream.read(_BLOCK_BYTES):
            yield block


def _count_quotes_and_lines(file: DataFile, header_lines: int) -> tuple[int, int]:
    quotes, lines, last = 0, 0, b"\n"
    for block in _blocks(file, header_lines):
        quotes, lines, last = quotes + block.count(b'"'), lines + block.count(b"\n"), block[-1:]
    return quotes, lines + (last != b"\n")


def _is_plain(text: bytes, separator: bytes) -> bool:
    """Whether no field within `text` begins or ends unlike an integer; what comes before its third byte is known already."""
    ends = (separator, b"\n", b"\r")
    for sign in _SIGNS:
        if sign != separator and sign in text:
            blank = sign.isspace()
            if any(end + sign in text or (blank and sign + end in text) for end in ends):
                return False
    data = np.frombuffer(text, np.uint8)
    begins = data[:-2] == separator[0]
    begins |= data[:-2] == _NEWLINE
    if b"\r" in text:
        begins |= data[:-2] == _RETURN
    begins &= data[1:-1] == _ZERO
    following = data[np.flatnonzero(begins) + 2]
    harmless = following == _POINT
    for end in (separator[0], _NEWLINE, _RETURN):
        harmless |= following == end
    return bool(harmless.all())
