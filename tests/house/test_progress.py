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


def test_nothing_is_written_unless_shown_on_a_terminal(capsys, monkeypatch):
    _count_to_three()
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    _count_to_three(shown=False)
    assert capsys.readouterr() == ("", "")
