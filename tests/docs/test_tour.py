"""The tour through the code: its functions exist, and one rating passes them in the order of the page."""

import importlib
import re
import sys
from functools import reduce
from pathlib import Path

import pytest

import topnrank as tnr

ROOT = Path(tnr.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs/concepts/tour.md").read_text()
HOPS = re.findall(r"^\d+\. `([\w/]+\.py):([\w.]+)`", PAGE, flags=re.MULTILINE)
COMPILED = ("kernels/", "_kernel.py", "/kernel.py")


def test_it_has_at_most_25_hops():
    assert 20 <= len(HOPS) <= 25
    assert len(HOPS) == len(re.findall(r"^\d+\. ", PAGE, flags=re.MULTILINE))


@pytest.mark.parametrize(("file", "name"), HOPS)
def test_the_function_exists(file, name):
    module = importlib.import_module("topnrank." + file.removesuffix(".py").replace("/", "."))
    assert callable(reduce(getattr, name.split("."), module))


@pytest.mark.filterwarnings("ignore:this model learned to rank the items")
def test_one_rating_passes_them_in_this_order(tmp_path):
    """Compiled functions are left out: the profiler does not see them."""
    rows = [f"{user},{item},{1 + user * item % 5}" for user in range(41, 61) for item in range(1185, 1205)]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *rows[::2]]))
    called = []

    def watch(frame, event, arg):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)):
            called.append((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname))

    sys.setprofile(watch)
    try:
        model = tnr.TopNRank(task="rated", factors=4, epochs=1).fit(tnr.read(tmp_path / "ratings.csv"))
        model.save(tmp_path / "model.safetensors")
        tnr.load(tmp_path / "model.safetensors").recommend([42], n=3)
    finally:
        sys.setprofile(None)
    position = 0
    for hop in HOPS:
        if not any(part in hop[0] for part in COMPILED):
            assert hop in called[position:], f"{hop[0]}:{hop[1]} is not called after the hops before it"
            position += called[position:].index(hop)
