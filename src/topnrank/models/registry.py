"""All models by name: what the command line offers and what files may hold."""

from topnrank.models.base import Model
from topnrank.models.baselines import ItemMean, Popularity, Random
from topnrank.models.biased_mf import BiasedMF
from topnrank.models.bpr import BPR
from topnrank.models.climf import CLiMF
from topnrank.models.ease import EASE
from topnrank.models.gaussian_rank import GaussianRank
from topnrank.models.listpmf import ListPMF
from topnrank.models.listrank import ListRank
from topnrank.models.mfadg import MFADG
from topnrank.models.neighbour_ridge import NeighbourRidge
from topnrank.models.tfmap import TFMAP
from topnrank.models.top_n_rank import TopNRank
from topnrank.models.warp import WARP
from topnrank.models.xclimf import XCLiMF

LISTWISE = (TopNRank, CLiMF, XCLiMF, ListRank, ListPMF, MFADG, TFMAP, GaussianRank)
PAIRWISE = (BPR, WARP)
LINEAR = (EASE, NeighbourRidge)
CONTROLS = (BiasedMF, ItemMean, Popularity, Random)
MODELS: dict[str, type[Model]] = {kind.name: kind for kind in (*LISTWISE, *PAIRWISE, *LINEAR, *CONTROLS)}
