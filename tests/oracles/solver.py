"""An exact solver for any family: proximal Newton, each quadratic by coordinate descent, polished signs held."""

import numpy as np


def soft(z, t):
    return np.sign(z) * max(abs(z) - t, 0.0)


def coordinate_descent(G, c, l1, start, tol=1e-13, sweeps=100_000):
    """argmin .5 b'Gb - c'b + sum_j l1_j |b_j|; a coordinate with G_jj = 0 stays 0.

    Every few sweeps the problem is solved with the signs held; if that is optimal, it is the answer.
    """
    b = np.array(start, dtype=float)
    varying = np.flatnonzero(np.diag(G) > 0)
    for sweep in range(sweeps):
        if sweep % 5 == 0:
            exact = with_signs_held(G, c, l1, b)
            if is_optimal(G, c, l1, exact, varying):
                return exact
        largest = 0.0
        for j in varying:
            new = soft(c[j] - G[j] @ b + G[j, j] * b[j], l1[j]) / G[j, j]
            largest = max(largest, abs(new - b[j]) * np.sqrt(G[j, j]))
            b[j] = new
        if largest <= tol * (1 + np.max(np.abs(b) * np.sqrt(np.diag(G)))):
            break
    return b


def with_signs_held(G, c, l1, b):
    A, exact = np.flatnonzero(b), np.zeros(len(b))
    if len(A):
        exact[A] = np.linalg.lstsq(G[np.ix_(A, A)], c[A] - l1[A] * np.sign(b[A]), rcond=None)[0]
    return np.where(np.sign(exact) == np.sign(b), exact, np.nan)


def is_optimal(G, c, l1, b, varying):
    if np.isnan(b).any():
        return False
    g = c - G @ b
    off = np.where(b != 0, np.abs(g - l1 * np.sign(b)), np.maximum(np.abs(g) - l1, 0.0))
    return np.max(off[varying], initial=0.0) <= 1e-14 * (1 + np.max(np.abs(c)))


def solve(problem, lam, max_steps=200):
    """(b0, b) that minimise the problem, to rounding."""
    p = problem.X.shape[1]
    unit = np.where(problem.sd > 0, problem.sd, 1.0)
    shift = problem.mean if problem.fit_intercept else np.zeros(p)
    Z = np.where(problem.present, (problem.X - shift) / unit, 0.0)
    Z = np.column_stack([np.ones(len(Z)) if problem.fit_intercept else np.zeros(len(Z)), Z])
    v = np.append(0.0, problem.v / unit)
    l1, l2 = lam * problem.l1_ratio * v, lam * (1 - problem.l1_ratio) * v**2
    w = problem.w / problem.omega

    def value(theta):
        return w @ problem.losses(Z @ theta) + l1 @ np.abs(theta) + l2 @ theta**2 / 2

    theta = np.zeros(p + 1)
    for _ in range(max_steps):
        eta = Z @ theta
        H = Z.T @ (Z * (w * problem.curvatures(eta))[:, None])
        g = Z.T @ (w * problem.slopes(eta))
        step = coordinate_descent(H + np.diag(l2), H @ theta - g, l1, theta) - theta
        size = 1.0
        while size > 1e-10 and not value(theta + size * step) <= value(theta) + 1e-14 * abs(value(theta)):
            size /= 2
        theta = theta + size * step if size < 1.0 else theta + step
        if np.max(np.abs(step)) <= 1e-13 * (1 + np.max(np.abs(theta))):
            break
    b = theta[1:] / unit
    return theta[0] - shift @ b, b
