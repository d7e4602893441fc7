"""What users hold: hyper-parameters, `fit`, and after it ids, parameters, recommendations."""

from topnrank.models.base import Model
from topnrank.models.baselines import ItemMean, Popularity, Random
from topnrank.models.biased_mf import BiasedMF
from topnrank.models.bpr import BPR
from topnrank.models.climf import CLiMF
from topnrank.models.ease import EASE
from topnrank.models.factor_model import FactorModel
from topnrank.models.gaussian_rank import GaussianRank
from topnrank.models.listpmf import ListPMF
from topnrank.models.listrank import ListRank
from topnrank.models.mfadg import MFADG
from topnrank.models.neighbour_ridge import NeighbourRidge
from topnrank.models.persistence import load
from topnrank.models.registry import MODELS
from topnrank.models.tfmap import TFMAP
from topnrank.models.top_n_rank import TopNRank
from topnrank.models.warp import WARP
from topnrank.models.xclimf import XCLiMF

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
    "NeighbourRidge",
    "Popularity",
    "Random",
    "TopNRank",
    "XCLiMF",
    "load",
]
