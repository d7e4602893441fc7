"""The report of a comparison: one HTML page that stands alone, without a network, in light and dark, on desk and phone."""

import json
import os
from collections.abc import Sequence
from html import escape
from importlib.resources import files

import topnrank
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import duration, listing, metric_label, number, protocol_label, told
from topnrank.experiments.report.plots import Picture, pictures
from topnrank.experiments.report.summary import Row, Summary
from topnrank.experiments.report.tables import TEST_HEADER, cells_of_test, shown_tests, title_of_tests
from topnrank.experiments.statistics import PairedTest
from topnrank.io.atomic import write_atomically


def write_report(comparison: Comparison | Summary, path: str | os.PathLike[str], reference: str | None = None) -> None:
    """Writes the page to `path`, atomically; the others are tested against the row `reference` (default: the first)."""
    content = page(comparison, reference).encode()
    write_atomically(path, lambda temporary: _write(temporary, content))


def _write(path: os.PathLike[str], content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)


def page(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """The page as text; the same comparison gives the same page."""
    summary = Summary.of(comparison, reference)
    drawn = pictures(summary)
    title = f"Comparison of {len(summary.comparison.models)} models"
    once = [picture for picture in drawn if picture.name in ("objective", "validation", "lengths")]
    sections = [
        *(_results(summary, protocol, drawn) for protocol in summary.comparison.protocols),
        _section("training", "Training and data", _figures(once)),
        _section("how", "How this was made", _how(summary)),
        _section("parameters", "Parameters", _parameters(summary)),
    ]
    main = "\n".join(section for section in sections if section)
    footer = f"<footer><p>Written by topnrank {escape(topnrank.__version__)}.</p></footer>"
    return f"{_top(title)}\n{_header(summary, title)}\n<main>\n{main}\n</main>\n{footer}\n</body>\n</html>\n"


def _top(title: str) -> str:
    """Everything before the first visible word."""
    css = files("topnrank.experiments.report").joinpath("report.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f"<title>{escape(title)}</title>",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<style>\n{css}</style>",
            "</head>",
            "<body>",
        ]
    )


# -- parts of the page --------------------------------------------------------------------------------------------------


def _header(summary: Summary, title: str) -> str:
    """What was compared, the verdict, and where the rest is."""
    shape = summary.comparison
    repeats = f"{shape.repeats} repeats, each on a split of its own" if shape.repeats > 1 else "one split"
    sizes = [f"{told(shape.facts[key])} {key}" for key in ("users", "items", "rows") if key in shape.facts]
    ranked = listing([protocol_label(protocol) for protocol in shape.protocols])
    lead = f"{f'{listing(sizes)}; ' if sizes else ''}ranking {ranked}; {repeats}, the same for all models."
    verdicts = "\n".join(f"<p>{escape(summary.verdict(protocol))}</p>" for protocol in shape.protocols)
    links = [(f"results-{protocol}", f"Ranking {protocol_label(protocol)}") for protocol in shape.protocols]
    links += [("training", "Training and data"), ("how", "How this was made"), ("parameters", "Parameters")]
    items = "".join(f'<li><a href="#{escape(target)}">{escape(text)}</a></li>' for target, text in links)
    return (
        f'<header>\n<h1>{title}</h1>\n<p class="lead">{escape(lead)}</p>\n'
        f'<section class="verdict" aria-labelledby="verdict">\n<h2 id="verdict">Verdict</h2>\n{verdicts}\n</section>\n'
        f'<nav aria-label="Contents"><ul>{items}</ul></nav>\n</header>'
    )


def _section(name: str, title: str, content: str) -> str:
    if not content:
        return ""
    return f'<section aria-labelledby="{escape(name)}">\n<h2 id="{escape(name)}">{escape(title)}</h2>\n{content}\n</section>'


def _results(summary: Summary, protocol: str, drawn: Sequence[Picture]) -> str:
    """Means, tests and figures of one protocol."""
    title = f"Ranking {protocol_label(protocol)}"
    parts = [_scores(summary, protocol, summary.shown, _SCORES_CAPTION)]
    if summary.shown != summary.comparison.metrics:
        every = _scores(summary, protocol, summary.comparison.metrics, "Every metric that was measured.")
        parts.append(f"<details><summary>All {len(summary.comparison.metrics)} metrics</summary>{every}</details>")
    parts.append(_tests(summary, protocol))
    parts.append(_figures([picture for picture in drawn if picture.name.endswith(f"-{protocol}")]))
    return _section(f"results-{protocol}", title, "\n".join(part for part in parts if part))


_SCORES_CAPTION = "Mean ± standard deviation over repeats; the best mean of a column is bold."


def _scores(summary: Summary, protocol: str, metrics: Sequence[str], caption: str) -> str:
    head = _head(["Model", *map(metric_label, metrics), "Time to fit"])
    body = "\n".join(_score_row(summary, row, metrics) for row in summary.rows[protocol])
    return _table(f"Means, {protocol_label(protocol)}", caption, head, body)


def _score_row(summary: Summary, row: Row, metrics: Sequence[str]) -> str:
    name = _name(row.model)
    if not row.scores:
        why = f'<td class="why" colspan="{len(metrics) + 1}"><span>{escape(row.note)}</span></td>'
        return f'<tr><th scope="row">{name}</th>{why}</tr>'
    note = f'<span class="note">{escape(row.note)}</span>' if row.note else ""
    cells = []
    for score in (row.scores[metric] for metric in metrics):
        spread = f' <span class="spread">± {number(score.spread)}</span>' if number(score.spread) != "-" else ""
        cells.append(f"<td{_class('best', score.best)}>{number(score.mean)}{spread}</td>")
    kind = _class("reference", row.model == summary.reference)
    return f'<tr{kind}><th scope="row">{name}{note}</th>{"".join(cells)}<td>{duration(row.seconds)}</td></tr>'


def _tests(summary: Summary, protocol: str) -> str:
    """The paired tests: the headline metric in sight, the others behind a click."""
    tests = shown_tests(summary, protocol)
    main = [test for test in tests if test.metric == summary.headline]
    rest = [test for test in tests if test.metric != summary.headline]
    if not main:
        return ""
    title = title_of_tests(summary, protocol, summary.headline)
    parts = [f"<h3>{escape(title)}</h3>", _test_table(main, title, _TESTS_CAPTION)]
    if rest:
        labels = listing([metric_label(metric) for metric in dict.fromkeys(test.metric for test in rest)])
        table = _test_table(rest, f"{title}, other metrics", f"The same tests at {labels}.", name_metric=True)
        parts.append(f"<details><summary>The same at {escape(labels)}</summary>{table}</details>")
    return "\n".join(parts)


_TESTS_CAPTION = (
    "Differences per user, reference minus the other row, so above zero the reference is better. The p values are "
    "Holm-corrected; * both below 0.05, ** 0.01, *** 0.001. Effect size: Cohen's d_z."
)


def _test_table(tests: Sequence[PairedTest], title: str, caption: str, *, name_metric: bool = False) -> str:
    """Row headers are the models, so that they stay in sight when the table scrolls."""
    rows, first = [], 0 if name_metric else 1
    for place, test in enumerate(tests):
        metric, _, *cells = map(escape, cells_of_test(test))
        apart = place > 0 and test.metric != tests[place - 1].metric
        data = "".join(f"<td>{cell}</td>" for cell in (metric, *cells)[first:])
        rows.append(f'<tr{_class("apart", apart)}><th scope="row">{_name(test.second)}</th>{data}</tr>')
    return _table(title, caption, _head([TEST_HEADER[1], *(TEST_HEADER[0], *TEST_HEADER[2:])[first:]]), "\n".join(rows))


def _figures(drawn: Sequence[Picture]) -> str:
    """The figures side by side where there is room."""
    parts = [
        f'<figure id="figure-{escape(picture.name)}"><h3>{escape(picture.title)}</h3>\n{picture.inline()}\n'
        f"<figcaption>{escape(picture.description)}</figcaption></figure>"
        for picture in drawn
    ]
    return '<div class="figures">\n' + "\n".join(parts) + "\n</div>" if parts else ""


def _how(summary: Summary) -> str:
    """Conventions and settings, then the facts of the data."""
    conventions = _words("Conventions and settings", summary.conventions())
    facts = summary.data_facts()
    return conventions + ("\n<h3>Data</h3>\n" + _words("Data", facts) if facts else "")


def _parameters(summary: Summary) -> str:
    """All parameters of every model, folded away."""
    known = summary.comparison.settings.get("parameters", {})
    parts = []
    for model in summary.comparison.models:
        pairs = [
            (name, json.dumps(value, ensure_ascii=False, default=str)) for name, value in known.get(model, {}).items()
        ]
        if pairs:
            table = _words(f"Parameters of {model}", pairs, code=True)
            parts.append(f"<details><summary>{escape(model)}</summary>{table}</details>")
        else:
            parts.append(f"<p>{escape(model)}: no parameters.</p>")
    return "\n".join(parts)


# -- tables -------------------------------------------------------------------------------------------------------------


def _words(title: str, pairs: Sequence[tuple[str, str]], *, code: bool = False) -> str:
    """Names and texts in two columns."""
    form = "<code>{}</code>" if code else "{}"
    rows = "\n".join(
        f'<tr><th scope="row">{form.format(escape(name))}</th><td>{form.format(escape(text))}</td></tr>'
        for name, text in pairs
    )
    return _table(title, "", "", rows, kind="words")


def _name(model: str) -> str:
    return f'<span class="name">{escape(model)}</span>'


def _class(name: str, wanted: bool) -> str:
    return f' class="{name}"' if wanted else ""


def _head(cells: Sequence[str]) -> str:
    return "<thead><tr>" + "".join(f'<th scope="col">{escape(cell)}</th>' for cell in cells) + "</tr></thead>"


def _table(title: str, caption: str, head: str, body: str, *, kind: str = "numbers") -> str:
    """A table that scrolls inside its own frame where the page is narrow."""
    words = (
        f'<p class="caption">{escape(caption)}</p>\n' if caption else ""
    )  # not in the table: it must not scroll away
    return (
        f'<div class="frame">{words}<div class="wide" role="region" tabindex="0" aria-label="{escape(title)}">'
        f'<table class="{kind}"><caption>{escape(title)}</caption>{head}\n<tbody>\n{body}\n</tbody></table></div></div>'
    )
