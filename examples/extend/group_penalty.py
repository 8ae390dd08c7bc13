"""A penalty of another shape. Copy this file and change the class.

This one is the group lasso: features of a group enter and leave together.
"""

from dataclasses import dataclass

import numpy as np

from streamlasso.penalties import Penalty


@dataclass(frozen=True)
class GroupLasso(Penalty):
    """`sum_g sqrt(size of g) |u_g|` over groups of columns; a column of no group is one by itself."""

    groups: tuple[tuple[int, ...], ...]

    def all_groups(self, u):
        grouped = {j for group in self.groups for j in group}
        return [list(group) for group in self.groups] + [[j] for j in range(len(u)) if j not in grouped]

    def value(self, u):
        """P(u)"""
        return sum(np.sqrt(len(g)) * np.linalg.norm(u[g]) for g in self.all_groups(u))

    def prox(self, u, step):
        """The z with the least `|z - u|^2 / 2 + step P(z)`."""
        out = np.zeros_like(u)
        for g in self.all_groups(u):
            norm, shrink = np.linalg.norm(u[g]), step * np.sqrt(len(g))
            if norm > shrink:
                out[g] = (1 - shrink / norm) * u[g]
        return out

    def dual_norm(self, g):
        """The smallest lam at which u = 0 is best where the loss falls as g does."""
        return max(np.linalg.norm(g[group]) / np.sqrt(len(group)) for group in self.all_groups(g))
