"""ListPMF: Plackett-Luce likelihood of the order of the ratings."""
