"""All models by name: what the command line offers and what files may hold."""

from topnrank.models.base import Model
from topnrank.models.baselines import ItemMean, Popularity, Random
from topnrank.models.biased_mf import BiasedMF
from topnrank.models.top_n_rank import TopNRank

MODELS: dict[str, type[Model]] = {kind.name: kind for kind in (TopNRank, BiasedMF, ItemMean, Popularity, Random)}
