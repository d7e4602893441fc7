"""Tables as HTML, for notebooks: what the objects of the library show of themselves there."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", notes: Sequence[str] = ()
) -> str:
    """A table with the notes in small print below it; the texts are escaped, and without rows there is no table.

    A cell that begins with a digit or a sign stands to the right.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    parts = [f"<p><b>{escape(title)}</b></p>"] if title else []
    if body:
        parts.append(f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>")
    parts += [f"<p><small>{escape(note)}</small></p>" for note in notes if note]
    return f"<div>{''.join(parts)}</div>"


def _cell(text: str) -> str:
    side = "right" if text[:1].isdigit() or (text[:1] in "+-" and text[1:2].isdigit()) else "left"
    return f'<td style="text-align: {side}">{escape(text)}</td>'


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same for a terminal: columns two spaces apart."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )
