# cython: language_level=3
"""Where the state of a feature lies. `HEAD` numbers of 32 bits come first: its key (two of them), its largest |x|
so far, and the row that it was last in; then `width` floats of whoever owns the table."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define wide_prefetch(place) __builtin_prefetch(place)
    #else
    #define wide_prefetch(place) ((void)(place))
    #endif
    """
    void wide_prefetch(const void* place) noexcept nogil

cdef enum:
    HEAD = 4
    #: Records lie in chunks of this many: memory grows in small steps, and a record never moves.
    CHUNK = 256


#: A non-zero of a row; `record` is NULL where its feature has none.
cdef struct Entry:
    uint64_t key
    double value
    float* record
    void* name  # the string, borrowed, where there is one
    uint32_t tag


cdef struct Slot:
    uint32_t tag
    uint32_t place  # of its record, plus 1; 0 is an empty slot


@cython.final
cdef class Table:
    cdef readonly Py_ssize_t n, n_slots, hand
    cdef Py_ssize_t most, stride, n_chunks, room
    cdef uint64_t secret
    cdef Slot* slots
    cdef float** chunks

    cdef void find(self, Entry* entries, Py_ssize_t n) noexcept nogil
    cdef float* _found(self, uint64_t key, uint32_t tag) noexcept nogil
    cdef float* insert(self, uint64_t key, uint32_t tag, uint32_t row) except? NULL
    cdef float* record(self, Py_ssize_t place) noexcept nogil
    cdef uint32_t _tag_of(self, uint64_t key) noexcept nogil
    cdef Py_ssize_t _home_of(self, uint32_t tag) noexcept nogil
    cdef float* _first_of(self, uint32_t tag) noexcept nogil
    cdef Py_ssize_t _slot_of(self, uint64_t key, uint32_t tag) noexcept nogil
    cdef void _put(self, uint32_t tag, Py_ssize_t place) noexcept nogil
    cdef void _take_out(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t _least_useful(self, uint32_t row) noexcept nogil
    cdef int _grow_slots(self, Py_ssize_t n_slots) except -1
    cdef int _grow_chunks(self) except -1


cdef inline uint64_t key_of(const float* record) noexcept nogil:
    cdef uint64_t key
    memcpy(&key, record, 8)
    return key

cdef inline float* largest(float* record) noexcept nogil:
    return record + 2

cdef inline uint32_t* last_row(float* record) noexcept nogil:
    return <uint32_t*>(record + 3)

cdef inline float* state_of(float* record) noexcept nogil:
    return record + HEAD


cdef void* resized(void* old, size_t size) except NULL

cdef uint64_t hashed(uint64_t k0, uint64_t k1, const unsigned char* text, Py_ssize_t length,
                     bint after) noexcept nogil
