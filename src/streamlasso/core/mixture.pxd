cimport cython

from streamlasso.core.experts cimport Experts
from streamlasso.core.bounds cimport Bounds
from streamlasso.core.carry cimport Carry
from streamlasso.core.engine cimport Engine
from streamlasso.core.pointers cimport Pointers
from streamlasso.core.shares cimport Shares


@cython.final
cdef class MixtureLearner(Engine):
    cdef readonly list experts
    cdef Pointers each
    cdef Py_ssize_t n_memories, n_permanent, n, K, every
    cdef Bounds bounds
    cdef Shares shares
    cdef Carry carry
    cdef bint scaled, carries
    cdef public double dispersion, dispersion_weight
    cdef readonly double[::1] model
    cdef double[::1] loss, share_loss, predicted, targets, weight, own
    cdef double[:, ::1] rows, etas, lags
    cdef Py_ssize_t[::1] began

    cdef int _evaluate(self, Py_ssize_t i) except -1 nogil
    cdef int _evaluate_experts(self, double y, double weight, double least, const double* etas) except -1 nogil
    cdef int _learn_carry(self, double y, double weight, double least, double eta, const double* lags) except -1 nogil
    cdef double _carried(self, const double* lags, double eta) noexcept nogil
    cdef double _own_eta(self, const double* x, double* row) except? -1 nogil
    cdef int _learn_all(self, Py_ssize_t n) except -1 nogil
    cdef void _restart(self) noexcept nogil
    cdef int _predict_all(self, const double* row, double* etas) except -1 nogil
    cdef double _loss_of(self, double y, double weight, double least, double eta) except? -1 nogil
    cdef double _prediction(self, const double* etas) noexcept nogil
    cdef double _average_of(self, const double* weights, const double* etas) noexcept nogil
    cdef void _measure_noise(self, double deviance) noexcept nogil
    cdef double _prediction_of(self, Py_ssize_t m, const double* etas) noexcept nogil
    cdef void _blend(self) noexcept nogil
    cdef double _average(self, int what) noexcept nogil
    cdef Py_ssize_t _leading_memory(self) noexcept nogil
    cdef double _weight_of(self, Py_ssize_t m, Py_ssize_t k) noexcept nogil
    cdef Py_ssize_t _n_active(self) noexcept nogil
