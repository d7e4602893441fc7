"""All models by name: what the command line offers and what files may hold."""

from topnrank.models.attention.model import SequenceRank
from topnrank.models.base import Model
from topnrank.models.biased_mf import BiasedMF
from topnrank.models.controls import ItemMean, Popularity, Random, RecentPopularity
from topnrank.models.linear.ease import EASE
from topnrank.models.linear.neighbor_ridge import NeighborRidge
from topnrank.models.listwise import MFADG, TFMAP, CLiMF, GaussianRank, ListPMF, ListRank, XCLiMF
from topnrank.models.pairwise import BPR, WARP
from topnrank.models.sequence.item_id_order import ItemIdOrder
from topnrank.models.sequence.next_item_ridge import NextItemRidge
from topnrank.models.sequence.transitions import Transitions
from topnrank.models.topnrank.model import TopNRank

LISTWISE = (TopNRank, CLiMF, XCLiMF, ListRank, ListPMF, MFADG, TFMAP, GaussianRank)
PAIRWISE = (BPR, WARP)
LINEAR = (EASE, NeighborRidge)
ORDERED = (Transitions, NextItemRidge, SequenceRank)
CONTROLS = (BiasedMF, ItemMean, Popularity, RecentPopularity, ItemIdOrder, Random)
MODELS: dict[str, type[Model]] = {kind.name: kind for kind in (*LISTWISE, *PAIRWISE, *LINEAR, *ORDERED, *CONTROLS)}
SPARK_MODELS = {name: kind for name, kind in MODELS.items() if kind is not SequenceRank}
"""Those that have Estimators; attention is trained by one machine, with PyTorch."""
