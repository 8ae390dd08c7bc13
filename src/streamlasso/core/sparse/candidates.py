# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Features that have not earned a record yet: 12 bytes each instead of 144.

A feature is known here by 32 bits of its mixed key alone; its evidence is that of one expert, z and n, with the
gradients of the final prediction. It is admitted when it has been here before, and |z| > lam sqrt(n): with lam = 0 at
its second sight. Two features that belong to the same place displace each other, so a full list forgets those that are
rare.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt
from cython.cimports.libc.stdint import uint32_t, uint64_t
from cython.cimports.libc.stdlib import calloc, free

FEWEST = cython.declare(cython.Py_ssize_t, 1024)
#: 48 MB.
MOST_CANDIDATES = cython.declare(cython.Py_ssize_t, 2**22)


@cython.cclass
class Candidates:
    """A table without chains, which grows until it has MOST_CANDIDATES places."""

    def __cinit__(self, lam: cython.double):
        self.lam, self.used, self.size = lam, 0, FEWEST
        self.all = cython.cast(cython.pointer[Candidate], calloc(self.size, cython.sizeof(Candidate)))
        if self.all == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.all)

    @property
    def nbytes(self):
        return self.size * cython.sizeof(Candidate)

    def admit(self, key, g, z, n):
        """Add a gradient to the evidence of a feature. Is that enough? Then it leaves with its z and n."""
        here: cython.pointer[Candidate]
        # No secret: where a candidate is has to be the same in every process.
        tag: uint32_t = cython.cast(uint32_t, ((key ^ (key >> 32)) * cython.cast(uint64_t, 0xD6E8FEB86659FD93)) >> 32)
        if 2 * self.used > self.size and self.size < MOST_CANDIDATES:
            self._grow()
        here = self.all + tag % self.size
        if here.n > 0 and here.tag == tag:
            here.z += g
            here.n += g * g
            if fabs(here.z) > self.lam * sqrt(here.n):
                z[0], n[0] = here.z, here.n
                here.n = 0
                self.used -= 1
                return True
            return False
        self.used += here.n == 0
        here.tag, here.z, here.n = tag, g, g * g
        return False

    def _grow(self):
        i: cython.Py_ssize_t
        n_old: cython.Py_ssize_t = self.size
        old: cython.pointer[Candidate] = self.all
        new: cython.pointer[Candidate] = cython.cast(
            cython.pointer[Candidate], calloc(2 * n_old, cython.sizeof(Candidate))
        )
        if new == cython.NULL:
            raise MemoryError
        for i in range(n_old):
            if old[i].n > 0:
                new[old[i].tag % (2 * n_old)] = old[i]
        self.all, self.size = new, 2 * n_old
        free(old)
        return 0

    @property
    def state(self):
        """(candidate, 3) numbers of 32 bits: tag, z, n."""
        i: cython.Py_ssize_t
        kept = np.empty((self.size, 3), dtype=np.float32)
        rows: cython.float[:, ::1] = kept
        for i in range(self.size):
            cython.cast(cython.pointer[Candidate], cython.address(rows[i, 0]))[0] = self.all[i]
        return kept[kept[:, 2] > 0]

    def restore(self, kept, size):
        """Take what `state` gave, in as many places as there were."""
        i: cython.Py_ssize_t
        one: Candidate
        rows: cython.float[:, ::1] = np.array(kept, dtype=np.float32, order="C").reshape(-1, 3)
        if size < FEWEST or size > MOST_CANDIDATES or size & (size - 1) or rows.shape[0] > size:
            raise ValueError("the candidates do not fit the settings")
        while self.size < size:
            self._grow()
        for i in range(rows.shape[0]):
            one = cython.cast(cython.pointer[Candidate], cython.address(rows[i, 0]))[0]
            self.all[one.tag % self.size] = one
        self.used = rows.shape[0]
