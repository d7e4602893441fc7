"""The speed: Numba on plain arrays, each kernel the twin of a NumPy reference elsewhere. Imports nothing else of ours."""
