import sys
import types

from topnrank import _progress
from topnrank._progress import progress_bar


def _count_to_three(**options):
    with progress_bar("Counting", 3, **options) as bar:
        for number in range(3):
            bar.update(text=f"number {number}")
        bar.update(3, title="Counted")


def test_a_terminal_sees_title_amount_and_text(capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    _count_to_three()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Counted" in shown.err
    assert "3/3" in shown.err
    assert "number 2" in shown.err


def test_bytes_are_shown_with_their_unit(capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with progress_bar("file.zip", unit="bytes") as bar:
        bar.update(2_000_000, total=4_000_000)
    assert "2.0/4.0 MB" in capsys.readouterr().err


def test_a_log_has_a_line_every_ten_seconds_and_one_at_the_end(capsys, monkeypatch):
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(_progress.time, "monotonic", lambda: float(next(clock)))
    with progress_bar("Training", 8) as bar:
        for number in range(8):
            bar.update(text=f"objective {number}")
    lines = capsys.readouterr().err.splitlines()
    assert 2 < len(lines) < 8
    assert lines[0].startswith("Training: ")
    assert lines[-1].startswith("Training: 8/8 objective 7 · ")


def test_a_notebook_shows_a_bar_without_ipywidgets(capsys, monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=shown.append)
    made = types.SimpleNamespace(HTML=str, display=lambda bar, display_id: shown.append(bar) or handle)
    monkeypatch.setitem(sys.modules, "IPython.display", made)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(_progress, "_SECONDS_BETWEEN_BARS", 0.0)
    with progress_bar("Training <b>", 2) as bar:
        bar.update()
        bar.update(text="objective 1")
    assert shown[-1].startswith('<progress value="2"')
    assert "Training &lt;b&gt;: 2/2 objective 1" in shown[-1]
    assert capsys.readouterr() == ("", "")


def test_nothing_is_written_of_what_is_quick_or_not_shown(capsys, monkeypatch):
    _count_to_three()
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    _count_to_three(shown=False)
    assert capsys.readouterr() == ("", "")
