"""The sparse engine, slowly: dicts of doubles, exponentials as they are, systems solved anew in every row."""

import numpy as np

#: kind, alpha, beta, lam, half-life
SIXTEEN = [
    *[("ftrl", a, 0.3, 0.3, None) for a in (0.03125, 0.125, 0.5, 2.0)],
    *[("ftrl", a, 10.0, 1.2, None) for a in (0.625, 2.5, 10.0, 40.0)],
    ("ftrl", 0.25, 0.3, 0.6, 400),
    ("ftrl", 0.25, 0.3, 0.6, 4000),
    ("ftrl", 4.0, 0.3, 0.6, 400),
    ("ftrl", 4.0, 0.3, 0.6, 4000),
    ("implicit", 0.5, 0.3, 0.0, None),
    ("implicit", 2.0, 0.3, 0.0, None),
    ("coin", 4.0, 0.3, 0.0, None),
    ("coin", 16.0, 0.3, 0.6, None),
]


#: What leaks back of the weights of the experts, and of the outputs.
SHARE, OUTPUT_SHARE = 0.02, 0.0003


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logit(p):
    return np.log(p) - np.log1p(-p)


def log_loss(y, x):
    return np.logaddexp(0, x) - y * x


class Expert:
    """One logistic regression: z and n by feature; `None` is the intercept."""

    def __init__(self, kind, alpha, beta, lam, half_life):
        self.kind, self.alpha, self.beta, self.lam, self.half_life = kind, alpha, beta, lam, half_life
        self.z, self.n, self.seen = {}, {}, {}

    def touch(self, j, row):
        if self.half_life and j in self.z:
            f = 0.5 ** ((row - self.seen[j]) / self.half_life)
            self.z[j] *= f
            self.n[j] *= f
        self.z.setdefault(j, 0.0)
        self.n.setdefault(j, 0.0)
        self.seen[j] = row

    def shrink(self, j, ratio):
        self.z[j] *= ratio
        self.n[j] *= ratio**2

    def q(self, j):
        """The coefficient over -alpha rate."""
        z, r = self.z[j], np.sqrt(self.n[j])
        if j is None:
            return z / (0.3 + r)
        s = max(abs(z) - self.lam * r, 0.0)
        if self.kind != "coin":
            return np.sign(z) * s / (self.beta + r)
        v = 1 + r**2
        bet = (1 + min(s**2 / (2 * v + 2 * s), 20) / 256) ** 256
        return np.sign(z) * s * (2 * v + s) / (2 * (v + s) ** 2 * np.sqrt(v)) * bet

    def say(self, x, rate):
        bias = rate * (1.0 if self.kind == "coin" else self.alpha)
        return -bias * self.q(None) - rate * self.alpha * sum(self.q(j) * v for j, v in x.items())

    def learn(self, x, rate, y, m, row):
        g = sigmoid(m) - y
        if self.kind == "implicit":
            length = sum(v**2 / (self.beta + np.sqrt(self.n[j])) for j, v in x.items())
            length += 1 / (0.3 + np.sqrt(self.n[None]))
            low, high = -60.0, 60.0
            for _ in range(200):
                middle = (low + high) / 2
                above = middle > m - rate * self.alpha * length * (sigmoid(middle) - y)
                low, high = (low, middle) if above else (middle, high)
            g = sigmoid(low) - y
        for j, v in [*x.items(), (None, 1.0)]:
            q = self.q(j)
            if j is None:
                # The intercept forgets after it has spoken.
                self.touch(None, row + 1)
            r = np.sqrt(self.n[j])
            self.n[j] += (g * v) ** 2
            held = np.sqrt(self.n[j]) - r
            lam = 0.0 if j is None else self.lam
            if q != 0 and (self.kind != "coin" or j is None):
                self.z[j] += np.sign(q) * (abs(q) + lam) * held
            self.z[j] += g * v


class Stack:
    def __init__(self, n, prior):
        self.theta = np.array([1.0, 0.0] + [0.0] * n)
        self.A = prior * np.eye(n + 2)

    def learn(self, f, y):
        p = sigmoid(self.theta @ f)
        self.A += p * (1 - p) * np.outer(f, f)
        self.theta -= np.linalg.solve(self.A, (p - y) * f)


class Model:
    """Rows are dicts from feature to value."""

    def __init__(self):
        self.experts = [Expert(*each) for each in SIXTEEN]
        n = len(self.experts)
        self.largest, self.row, self.squares = {}, 0, 0.0
        self.w = np.full(n, 1 / n)
        self.stacks = [Stack(n, 2.0), Stack(n, 20.0)]
        self.pi = np.full(3, 1 / 3)

    def step(self, x, y):
        """eta as it was predicted, then the row is learnt."""
        self.row += 1
        for expert in self.experts:
            if self.row == 1:
                expert.touch(None, 1)
            for j in x:
                expert.touch(j, self.row)
        for j, v in x.items():
            before = self.largest.get(j, 0.0)
            if abs(v) > before:
                self.largest[j] = abs(v)
                for expert in self.experts:
                    expert.shrink(j, before / abs(v))
        x = {j: v / self.largest[j] for j, v in x.items()}
        self.squares += 1 + sum(v**2 for v in x.values())
        rate = np.sqrt(self.row / self.squares)
        m = np.array([expert.say(x, rate) for expert in self.experts])
        mixed = logit(used(self.w, SHARE) @ sigmoid(m))
        f = np.array([mixed, 1.0, *np.clip(m - mixed, -4, 4)])
        out = np.array([mixed, *(stack.theta @ f for stack in self.stacks)])
        eta = logit(used(self.pi, OUTPUT_SHARE) @ sigmoid(out))
        self.pi = shared(self.pi, log_loss(y, out), OUTPUT_SHARE)
        for stack in self.stacks:
            stack.learn(f, y)
        self.w = shared(self.w, log_loss(y, m), SHARE)
        for expert, said in zip(self.experts, m, strict=True):
            expert.learn(x, rate, y, said, self.row)
        return eta


def shared(w, losses, share):
    w = w * np.exp(-losses)
    w /= w.sum()
    return (1 - share) * w + share / len(w)


def used(w, share):
    """Less twice what leaks back per row."""
    w = np.maximum(w - 2 * share / len(w), 0)
    return w / w.sum()
