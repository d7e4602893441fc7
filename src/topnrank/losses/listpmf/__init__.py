"""ListPMF: Plackett-Luce likelihood of the order of the gains."""

from topnrank.losses.listpmf.reference import PlackettLuce

__all__ = ["PlackettLuce"]
