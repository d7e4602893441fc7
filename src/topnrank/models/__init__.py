"""What users hold: hyper-parameters, `fit`, and after it ids, parameters, recommendations."""

from topnrank.models.base import Model
from topnrank.models.controls import BiasedMF, ItemMean, Popularity, Random
from topnrank.models.factor.model import FactorModel
from topnrank.models.linear.ease import EASE
from topnrank.models.linear.neighbor_ridge import NeighborRidge
from topnrank.models.listwise import MFADG, TFMAP, CLiMF, GaussianRank, ListPMF, ListRank, XCLiMF
from topnrank.models.pairwise import BPR, WARP
from topnrank.models.persistence import load
from topnrank.models.registry import MODELS
from topnrank.models.topnrank.model import TopNRank

__all__ = [
    "BPR",
    "EASE",
    "MFADG",
    "MODELS",
    "TFMAP",
    "WARP",
    "BiasedMF",
    "CLiMF",
    "FactorModel",
    "GaussianRank",
    "ItemMean",
    "ListPMF",
    "ListRank",
    "Model",
    "NeighborRidge",
    "Popularity",
    "Random",
    "TopNRank",
    "XCLiMF",
    "load",
]
