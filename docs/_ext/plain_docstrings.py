"""A Sphinx extension: docstrings of this project are plain text with `code` in it, not reStructuredText.

Formulas hold `*`, `|P|` and `f_i`, which reStructuredText takes for markup. This turns a docstring into what was meant:
words between backticks are code, an indented paragraph is a formula or a table to be shown as it stands, the sections of
numpydoc ("Parameters", "Returns", ...) become lists of names, and everything else is text.
"""

import re

SECTION = re.compile(r"(Parameters|Returns|Yields|Raises|Attributes|Notes|Examples)$")
NAMES = ("Parameters", "Attributes", "Raises")
"""Sections that explain names: a name and an indented text, or "name : text" in one line."""
CODE = re.compile(r"(``.+?``|`[^`]+`)")


def escaped(line: str) -> str:
    """A line of text, with backticks as code and all other markup taken literally."""
    parts = CODE.split(line)
    for n, part in enumerate(parts):
        if n % 2:
            parts[n] = "``" + part.strip("`") + "``"
        else:
            parts[n] = re.sub(r"([\\*|`])|_\b|\b_", lambda found: "\\" + found[0], part)
    return "".join(parts)


def converted(lines: list[str]) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    starts = [n for n, line in enumerate(lines[:-1]) if SECTION.match(line) and lines[n + 1].startswith("---")]
    result = text(lines[: starts[0]] if starts else lines)
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        body = lines[start + 2 : end]
        result += ["", f"**{lines[start]}**", "", *(names(body) if lines[start] in NAMES else text(body))]
    return result


def names(lines: list[str]) -> list[str]:
    """A section that explains names, as a list of definitions."""
    result: list[str] = []
    for line in lines:
        if line.startswith(" ") or not line.strip():
            result.append(escaped(line))
            continue
        name, colon, rest = line.partition(" : ")
        result += ["", ", ".join(f"``{part.strip()}``" for part in name.split(","))]
        result += [f"    {escaped(rest)}"] if colon else []
    return result


def text(lines: list[str]) -> list[str]:
    """Paragraphs, lists and indented blocks."""
    result: list[str] = []
    in_list = literal = False
    before = ""
    for line in lines:
        if not line.strip():
            result.append("")
        elif line.startswith(" ") and not in_list:
            result += [line] if literal else ["", "::", "", "    " + line if not line.startswith("    ") else line]
            literal = True
        else:
            bullet = line.startswith("- ") or (not before.strip() and re.match(r"\d+\. ", line) is not None)
            if literal or (bullet and not in_list) or (in_list and not bullet and not line.startswith(" ")):
                result.append("")
            in_list = bullet or (in_list and line.startswith(" "))
            literal = False
            result.append(line if line.startswith(">>>") else escaped(line))
        before = line
    return result


def process(app, what, name, obj, options, lines):
    """Converts a docstring in place."""
    lines[:] = converted(lines)


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
