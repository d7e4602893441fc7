"""What the neighbour ridge says of an item that a user likes when the user, or the session, is left out: closed form.

`likes` is a `kernels.neighbours.Likes`, A the inverse (G[N, N] + lambda I)^-1 and w = W_i of one item.
"""

import numpy as np

from topnrank.kernels._jit import kernel


@kernel
def left_out(item, A, w, likes, position, links):
    """What the regression without user u says of (u, item), for every user of the item, from the one with all users.

    With x the user's likes among N(i), rho their strengths, h = w_u x'Ax and g = w_u rho'Ax:
    rho'W_i - g (1 - x'W_i) / (1 - h), the identity of leave-one-out in ridge regression for a target of 1. `position` is -1
    but for the items of N(i).
    """
    held, rho = np.empty(w.size, np.int64), np.empty(w.size)
    for p in range(likes.item_indptr[item], likes.item_indptr[item + 1]):
        user = likes.users[p]
        n = 0
        for q in range(likes.indptr[user], likes.indptr[user + 1]):
            t = position[likes.items[q]]
            if t >= 0:
                held[n], rho[n] = t, likes.strengths[q]
                n += 1
        score, plain, h, g = 0.0, 0.0, 0.0, 0.0
        for a in range(n):
            row = A[held[a]]
            score += rho[a] * w[held[a]]
            plain += w[held[a]]
            h += row[held[a]]
            g += rho[a] * row[held[a]]
            for b in range(a):
                h += 2.0 * row[held[b]]
                g += (rho[a] + rho[b]) * row[held[b]]
        h *= likes.weights[user]
        g *= likes.weights[user]
        links[likes.entries[p]] = score - g * (1.0 - plain) / (1.0 - h)


@kernel
def left_out_sessions(item, A, w, likes, position, links):
    """`left_out` where co-occurrences are those of sessions: the one with the item is left out, x are its likes.

    The score is that of its owner, so that rho are the strengths of all likes of the owner among N(i).
    """
    held, near, rho = np.empty(w.size, np.int64), np.empty(w.size, np.int64), np.empty(w.size)
    for p in range(likes.item_indptr[item], likes.item_indptr[item + 1]):
        session = likes.users[p]
        owner, n, m, score = likes.owners[session], 0, 0, 0.0
        for q in range(likes.whole_indptr[owner], likes.whole_indptr[owner + 1]):
            t = position[likes.whole_items[q]]
            if t >= 0:
                near[m], rho[m] = t, likes.whole_strengths[q]
                score += rho[m] * w[t]
                m += 1
        for q in range(likes.indptr[session], likes.indptr[session + 1]):
            t = position[likes.items[q]]
            if t >= 0:
                held[n] = t
                n += 1
        plain, h, g = 0.0, 0.0, 0.0
        for a in range(n):
            row = A[held[a]]
            plain += w[held[a]]
            for b in range(n):
                h += row[held[b]]
            for b in range(m):
                g += rho[b] * row[near[b]]
        h *= likes.weights[session]
        g *= likes.weights[session]
        links[likes.entries[p]] = score - g * (1.0 - plain) / (1.0 - h)
