"""What users hold: hyper-parameters, `fit`, and after it ids, parameters, recommendations."""

from topnrank.models.base import Model
from topnrank.models.baselines import ItemMean, Popularity, Random
from topnrank.models.biased_mf import BiasedMF
from topnrank.models.persistence import load
from topnrank.models.registry import MODELS
from topnrank.models.top_n_rank import TopNRank

__all__ = ["MODELS", "BiasedMF", "ItemMean", "Model", "Popularity", "Random", "TopNRank", "load"]
