"""MF-ADG: averaged discounted gain."""
