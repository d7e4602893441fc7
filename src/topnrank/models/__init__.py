"""What users hold: hyper-parameters, `fit`, and after it ids, parameters, recommendations."""

from topnrank.models.attention.model import SequenceRank
from topnrank.models.base import Model
from topnrank.models.biased_mf import BiasedMF
from topnrank.models.controls import ItemMean, Popularity, Random, RecentPopularity
from topnrank.models.factor.model import FactorModel
from topnrank.models.linear.ease import EASE
from topnrank.models.linear.neighbor_ridge import NeighborRidge
from topnrank.models.listwise import MFADG, TFMAP, CLiMF, GaussianRank, ListPMF, ListRank, XCLiMF
from topnrank.models.pairwise import BPR, WARP
from topnrank.models.persistence import load
from topnrank.models.registry import MODELS
from topnrank.models.sequence.item_id_order import ItemIdOrder
from topnrank.models.sequence.next_item_ridge import NextItemRidge
from topnrank.models.sequence.transitions import Transitions
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
    "ItemIdOrder",
    "ItemMean",
    "ListPMF",
    "ListRank",
    "Model",
    "NeighborRidge",
    "NextItemRidge",
    "Popularity",
    "Random",
    "RecentPopularity",
    "SequenceRank",
    "TopNRank",
    "Transitions",
    "XCLiMF",
    "load",
]
