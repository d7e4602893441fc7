"""Annealed cut, gradient budget and squared term of the Top-N-Rank kernels (reference: losses/shaping.py)."""

from topnrank.kernels.jit import kernel

FAINT = 1e-8
"""As in losses/shaping.py: fainter gradients are rounding and are not scaled up to the budget."""


@kernel
def annealed_n(n, m, anneal_n, progress):
    """N_t = N + (m - N)_+ (1 - progress / anneal_n)_+, the gate's cut for a list of m items."""
    if anneal_n <= 0.0:
        return n
    return n + max(m - n, 0.0) * max(1.0 - progress / anneal_n, 0.0)


@kernel
def gradient_budget_scale(settings, m, mass, size):
    """Factor that brings a gradient of this mass to its budget; `size` is the mass that it may be faint against."""
    if settings.gradient_budget > 0.0 and mass > FAINT * size:
        return settings.gradient_budget * min(float(m), settings.n) / mass
    return 1.0


@kernel
def add_squared(f, a, weight, G):
    """Adds the squared term on centered scores and gains to both gradients; returns its value."""
    shift = 0.0
    for i in range(f.size):
        shift += f[i] - a[i]
    shift /= f.size
    value = 0.0
    for i in range(f.size):
        z = f[i] - a[i] - shift
        value += z * z
        G[0, i] += weight * z
        G[1, i] += weight * z
    return 0.5 * weight * value
