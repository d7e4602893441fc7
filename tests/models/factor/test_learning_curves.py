"""Every model at its defaults learns without divergence on every data set it can learn from."""

from functools import partial

import numpy as np
import pytest

from topnrank import MODELS, EventWeights, TopNRank, read
from topnrank.errors import DataError
from topnrank.models.factor.model import FactorModel

pytestmark = pytest.mark.realdata

TRAINED = [kind for kind in MODELS.values() if issubclass(kind, FactorModel)]
METRICS = [partial(TopNRank, metric=metric) for metric in ("mrr", "map", "auc")]
FROM_LIKES = {"climf", "tfmap", "mf-adg"}
EPOCHS = 6
EVENTS = EventWeights({"view": 0.1, "cart": 0.5, "buy": 1.0, "buy-test": 0.0})


@pytest.fixture(scope="module")
def data(realdata):
    """The four data sets, the large ones by a tenth of their users, which is enough for a curve."""
    movies = read(realdata / "ml-1m.parquet")
    games = read(realdata / "amazon-video-games-2014-sasrec.parquet")
    shop = read(realdata / "retail-rocket-sslrec.parquet")
    return {
        "ml-100k": read(realdata / "ml-100k.parquet"),
        "ml-1m": movies.take(np.flatnonzero(movies.user_index % 10 == 0)).compact(),
        "amazon": games.take(np.flatnonzero(games.user_index % 10 == 0)).compact(),
        "retail-rocket": EVENTS(shop.take(np.flatnonzero(shop.user_index % 10 == 0)).compact()),
    }


def assert_learns(model, rows):
    losses = [record["objective"] for record in model.fit(rows).history_]
    assert np.isfinite(losses).all()
    assert min(losses[1:]) < losses[0]
    assert losses[-1] < losses[0] + 0.01 * abs(losses[0])
    assert all(np.isfinite(block).all() for block in model.fitted.arrays.values())


@pytest.mark.parametrize("users", ["history", "factors"])
@pytest.mark.parametrize("make", [*TRAINED, *METRICS], ids=lambda make: getattr(make, "name", "metric"))
@pytest.mark.parametrize("name", ["ml-100k", "ml-1m"])
def test_ratings(data, name, make, users):
    task = {"task": "rated"} if make is TopNRank else {}
    assert_learns(make(user_representation=users, epochs=EPOCHS, **task), data[name])


@pytest.mark.parametrize("kind", TRAINED, ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", ["amazon", "retail-rocket"])
def test_likes_and_events(data, name, kind):
    """Unary data teach those that learn from likes, or against unobserved items; the others say that they cannot."""
    factors = {"factor_weight": 0.5} if kind is TopNRank else {}  # else they may be left out
    if name == "retail-rocket" or kind.name in FROM_LIKES:
        assert_learns(kind(epochs=EPOCHS, **factors), data[name])
    elif "negatives" in kind().get_params():
        assert_learns(kind(epochs=EPOCHS, negatives=50, **factors), data[name])
    else:
        with pytest.raises(DataError, match="learns from likes alone"):
            kind(epochs=EPOCHS).fit(data[name])
