cimport cython

from streamlasso.core.mixture.average cimport Average
from streamlasso.core.mixture.bounds cimport Bounds
from streamlasso.core.mixture.calibration cimport Calibration
from streamlasso.core.model cimport Engine
from streamlasso.core.mixture.groups.base cimport Batch, Judged
from streamlasso.core.base.hedge cimport Hedge
from streamlasso.core.mixture.dispersion cimport Noise
from streamlasso.core.base.buffers cimport Doubles, Pointers
from streamlasso.core.mixture.selection cimport Selection
from streamlasso.core.lasso.moments cimport Scaler


@cython.final
cdef class MixtureLearner(Engine):
    cdef readonly list experts, groups
    cdef readonly Py_ssize_t M, G
    cdef Pointers each, group
    cdef Py_ssize_t n
    cdef Doubles room
    cdef readonly Hedge hedge
    cdef Noise noise
    cdef Average average
    cdef Bounds bounds
    cdef Scaler stream
    cdef Calibration calibration
    cdef Selection selection
    cdef bint carries, linked, calibrates
    # By expert; by group; by row of a mini-batch.
    cdef double* loss
    cdef double* pulls
    cdef double* own
    cdef double* carried
    cdef double* targets
    cdef double* weight
    cdef double* rows
    cdef double* etas
    cdef double* lags
    # The row predicted last, the predictions of all experts for it, and whether no other row was learnt since.
    cdef double* asked
    cdef bint is_asked

    cdef int _evaluate(self, Py_ssize_t i) except -1 nogil
    cdef bint _was_asked(self, Py_ssize_t n, const double* x) noexcept nogil
    cdef int _learn_carry(self, Py_ssize_t g, Judged* row, const double* lags) except -1 nogil
    cdef Py_ssize_t _row_size(self) noexcept nogil
    cdef double* _scratch(self) except NULL nogil
    cdef void _write_lags(self, double* lags) noexcept nogil
    cdef int _expect(self, double* lags, const double* own) except -1 nogil
    cdef double _eta(self, const double* x, double* room, double* lags) except? -1 nogil
    cdef int _start(self, Py_ssize_t n) except -1 nogil
    cdef int _learn_all(self, Py_ssize_t n) except -1 nogil
    cdef int _learn_experts(self, Batch* batch) except -1 nogil
    cdef int _see(self, const double* x, double y, double weight) except -1 nogil
    cdef int _predict_all(self, const double* row, double* etas) except -1 nogil
    cdef double _prediction(
        self, const double* etas, const double* lags, double* pulls, double* own, double* carried
    ) except? -1 nogil
    cdef double _gated(self, const double* etas) noexcept nogil
    cdef Py_ssize_t _memory_of(self, Py_ssize_t e) noexcept nogil
    cdef double _mean_eta(self) except? -1 nogil
    cdef int _add_up(self) except -1 nogil
    cdef int _select(self) except -1 nogil
    cdef Py_ssize_t _readable(self) except? -1 nogil
