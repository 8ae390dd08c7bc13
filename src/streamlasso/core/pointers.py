# cython: language_level=3
"""Objects of compiled classes in loops without the GIL."""

import cython
from cython.cimports.libc.stdlib import free, malloc


@cython.cclass
class Pointers:
    """The objects of a list, borrowed: the i-th is `cython.cast(Class, pointers.at[i])`, as long as this lives."""

    def __cinit__(self, objects):
        i: cython.Py_ssize_t
        self.objects = list(objects)
        self.n = len(self.objects)
        self.at = cython.cast(cython.pointer[cython.p_void], malloc(max(self.n, 1) * cython.sizeof(cython.p_void)))
        if self.at == cython.NULL:
            raise MemoryError
        for i in range(self.n):
            self.at[i] = cython.cast(cython.p_void, self.objects[i])

    def __dealloc__(self):
        free(self.at)
