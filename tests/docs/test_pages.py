"""Every example of the documentation runs: Python blocks, sessions with their answers, commands."""

import os
import warnings
from pathlib import Path

import pytest

from support.pages import Page

DOCS = Path(__file__).parents[2] / "docs"
CLUSTER = {"tutorials/cluster.md"}
"""Pages that start Spark; tests/spark/test_docs.py runs them."""
PAGES = sorted(
    str(page.relative_to(DOCS))
    for folder in (".", "tutorials", "how-to", "concepts", "reference")
    for page in (DOCS / folder).glob("*.md")
    if Page(page).blocks()
)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty folder, in which a page may write what it likes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOPNRANK_DATA", raising=False)
    return tmp_path


@pytest.mark.parametrize("name", [name for name in PAGES if name not in CLUSTER])
def test_the_examples_of_the_page_run(elsewhere, capsys, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Page(DOCS / name).run() > 0


def test_the_pages_that_matter_have_examples():
    for name in ("getting-started.md", "tutorials/ratings.md", "tutorials/events.md", "tutorials/new-users.md"):
        assert name in PAGES
    assert "tutorials/comparing.md" in PAGES
    assert set(PAGES) >= CLUSTER


def test_every_page_is_in_a_table_of_contents():
    """Sphinx warns about it, too; this test needs no Sphinx."""
    listed = "\n".join(page.read_text() for page in DOCS.rglob("*.md") if "{toctree}" in page.read_text())
    for page in DOCS.rglob("*.md"):
        if "_build" in page.parts or page.name == "index.md":
            continue
        assert page.stem in listed, os.fspath(page.relative_to(DOCS))
