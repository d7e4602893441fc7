"""The tutorial on clusters, run on the tests' own cluster."""

from pathlib import Path

from support.pages import Page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_tutorial_on_clusters_runs(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Page(DOCS / "tutorials/cluster.md").run() > 3
