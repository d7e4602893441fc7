"""Without Numba everything works, slowly, with one warning."""

import subprocess
import sys

SCRIPT = """
import importlib.abc, importlib.util, sys, warnings

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "numba":
            raise ImportError("blocked by the test")

sys.meta_path.insert(0, Block())
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "numba" else find_spec(name, *rest)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from topnrank import BiasedMF, ItemMean, TopNRank, evaluate, split_per_user, synthetic

    train, test = split_per_user(synthetic(60, 40, 1500, seed=1), seed=0)
    for model in (ItemMean(), BiasedMF(factors=4, epochs=2), TopNRank(factors=4, epochs=8)):
        model.fit(train)
        print(f"{evaluate(model, test)['ndcg@10']:.3f}", evaluate(model, test, protocol="catalog").n_users)
    assert model.recommend(history=[(1, 5), (2, 1)], n=3).num_rows == 3
assert "numba" not in sys.modules
assert [str(warning.message) for warning in caught] == ["Numba is not installed: everything works, but many times slower"]
"""


def test_without_numba_everything_works_with_one_warning():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
