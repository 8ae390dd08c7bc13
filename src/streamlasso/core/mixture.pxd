cimport cython

from streamlasso.core.average cimport Average
from streamlasso.core.bounds cimport Bounds
from streamlasso.core.calibration cimport Calibration
from streamlasso.core.carry cimport Carry
from streamlasso.core.choice cimport Choice
from streamlasso.core.engine cimport Engine
from streamlasso.core.experience cimport Experience
from streamlasso.core.experts.base cimport Batch
from streamlasso.core.noise cimport Noise
from streamlasso.core.pointers cimport Doubles, Pointers
from streamlasso.core.relevance cimport Relevance
from streamlasso.core.restarts cimport Restarts
from streamlasso.core.shares cimport Shares
from streamlasso.core.statistics cimport Scaler


@cython.final
cdef class MixtureLearner(Engine):
    cdef readonly list experts
    cdef Pointers each
    cdef readonly Py_ssize_t M
    cdef Py_ssize_t n
    cdef Doubles room
    cdef Noise noise
    cdef Experience experience
    cdef Average average
    cdef Restarts restarts
    cdef Bounds bounds
    cdef Scaler stream
    cdef Shares shares
    cdef Carry carry
    cdef Calibration calibration
    cdef Relevance relevance
    cdef Choice choice
    cdef bint carries, linked, calibrates, doubts
    #: May the scratch space be given to others while no rows come? Is it?
    cdef bint lends, asleep
    cdef double all_lam, all_lam_max, all_size
    # Whether these, and the status, are those of the last row.
    cdef bint is_summarised
    # By expert; by row of a mini-batch.
    cdef double* loss
    cdef double* pulls
    cdef double* targets
    cdef double* weight
    cdef double* own
    cdef double* rows
    cdef double* etas
    cdef double* lags
    # The row predicted last, the predictions of all experts for it, and whether no other row was learnt since.
    cdef double* asked
    cdef bint is_asked

    cdef int _evaluate(self, Py_ssize_t i) except -1 nogil
    cdef bint _was_asked(self, Py_ssize_t n, const double* x) noexcept nogil
    cdef int _evaluate_experts(self, double y, double weight, double least, const double* etas) except -1 nogil
    cdef double _gain(self, double y, double weight, double least, const double* averages) except? -1 nogil
    cdef int _learn_carry(self, double y, double weight, double least, double eta, const double* lags) except -1 nogil
    cdef double _carried(self, const double* lags, double eta) noexcept nogil
    cdef double* _scratch(self) except NULL nogil
    cdef double _own_eta(self, const double* x, double* row) except? -1 nogil
    cdef int _learn_all(self, Py_ssize_t n) except -1 nogil
    cdef int _learn_groups(self, Batch* batch) except -1 nogil
    cdef int _restart_in_turn(self) except -1 nogil
    cdef int _restart(self, Py_ssize_t m, Py_ssize_t every) except -1 nogil
    cdef int _predict_all(self, const double* row, double* etas) except -1 nogil
    cdef double _prediction(self, const double* etas, double* pulls) noexcept nogil
    cdef void _hold(self, const double* etas, double* pulls) noexcept nogil
    cdef double _average(self, const double* weights, const double* pulls) noexcept nogil
    cdef int _summarise(self) except -1 nogil
