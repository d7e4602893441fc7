"""A Sphinx extension: docstrings of this project are plain text with `code` in it, not reStructuredText.

Formulas hold `*`, `|P|` and `f_i`, which reStructuredText takes for markup. This turns a docstring into what was meant:
words between backticks are code, an indented paragraph is a formula or a table to be shown as it stands, sections such
as "Parameters" stay what numpydoc means by them, and everything else is text.
"""

import re

SECTION = re.compile(r"(Parameters|Returns|Yields|Raises|Attributes|Notes|Examples)$")
BULLET = re.compile(r"\s*(-|\d+\.) ")
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
    result: list[str] = []
    in_section = in_list = literal = False
    for n, line in enumerate(lines):
        following = lines[n + 1] if n + 1 < len(lines) else ""
        if not line.strip():
            result.append("")
            continue
        indented = line.startswith("    ") or (line.startswith("  ") and not in_list)
        if SECTION.match(line) and following.startswith("---"):
            in_section, in_list = True, False
            result.append(line)
        elif in_section:
            result.append(line if line.startswith("---") else escaped(line))
        elif line.lstrip().startswith((">>>", "...")):
            result.append(line)
        elif indented and not in_list:
            if not literal:
                result += ["", "::", ""]
            literal = True
            result.append(line)
            continue
        else:
            starts = BULLET.match(line) is not None
            if starts and not in_list:
                result.append("")
            if literal or (in_list and not starts and not line.startswith(" ")):
                result.append("")
            in_list = starts or (in_list and line.startswith(" "))
            result.append(escaped(line))
        literal = False
    return result


def process(app, what, name, obj, options, lines):
    """Converts a docstring in place, before numpydoc's sections are read."""
    lines[:] = converted(lines)


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True}
