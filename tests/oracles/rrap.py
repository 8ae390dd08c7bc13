"""The authors' R package, rRAP 1.1, from the page on its exact semantics beside its trajectories; defects included."""

import numpy as np

from oracles.solver import coordinate_descent


def lasso(G, c, lam, start):
    """argmin .5 b'Gb - c'b + lam |b|_1, exactly; nothing at once if lam exceeds every |c|."""
    if lam > np.max(np.abs(c)):
        return np.zeros(len(c))
    return coordinate_descent(G, c, np.full(len(c), lam), start)


def direction(beta, Sx, c, exact):
    """How the coefficients move as lam falls, at the package's length."""
    g, A = np.zeros(len(c)), np.flatnonzero(beta)
    if not len(A):
        g[np.argmax(np.abs(c))] = 0.01 * np.sign(c[np.argmax(c)])  # the package's sign, taken at another index
        return g
    s = np.sign(beta[A])
    H = Sx[np.ix_(A, A)] if exact else np.diag(np.diag(Sx)[A])
    h = np.linalg.solve(H, s)
    g[A] = h / np.sqrt(s @ h)
    return g


def trajectory(X, y, *, r, step_size, exact, lam=0.1):
    """(lam, lam_max, beta) after each row; the first row is the burn-in."""
    Z = np.column_stack([y, X])
    w, m, S = 1.0, np.zeros(Z.shape[1]), np.eye(Z.shape[1])
    beta = lasso(np.outer(X[0], X[0]), X[0] * y[0], lam, np.zeros(X.shape[1]))
    yield lam, np.nan, beta
    for z in Z[1:]:
        w = r * w + 1
        m = (1 - 1 / w) * m + z / w
        S = (1 - 1 / w) * S + np.outer(z - m, z - m) / w
        Sx, c = S[1:, 1:], S[1:, 0]
        error = z[0] - z[1:] @ beta
        lam = max(0.0, lam - step_size * error * (z[1:] @ direction(beta, Sx, c, exact)))
        beta = lasso(Sx, c, lam, beta)
        yield lam, np.max(np.abs(c)), beta
