cimport cython

from streamlasso.core.experts.base cimport Batch, Experts
from streamlasso.core.bounds cimport Bounds
from streamlasso.core.carry cimport Carry
from streamlasso.core.choice cimport Choice
from streamlasso.core.engine cimport Engine
from streamlasso.core.pointers cimport Doubles, Pointers
from streamlasso.core.calibration cimport Calibration
from streamlasso.core.relevance cimport Relevance
from streamlasso.core.shares cimport Shares
from streamlasso.core.statistics cimport Scaler


#: What a group has seen of the responses: their range (of classes: how many of each), and how many.
cdef enum:
    LOW, HIGH, ROWS_SEEN, N_EXPERIENCE


@cython.final
cdef class MixtureLearner(Engine):
    cdef readonly list experts
    cdef Pointers each
    cdef readonly Py_ssize_t M
    cdef Py_ssize_t n_permanent, n, n_pools
    cdef Doubles room
    # Of each kind that restarts: its first group, the one after its last, and the rows between restarts.
    cdef Py_ssize_t* pools
    # Where two threads learn a row together: the groups in the order in which they are taken, from both ends, and how
    # many are; the row.
    cdef Py_ssize_t[::1] order
    cdef long taken
    cdef Batch* batch
    cdef Bounds bounds
    cdef Scaler stream
    cdef Shares shares
    cdef Carry carry
    cdef Calibration calibration
    cdef Relevance relevance
    cdef Choice choice
    cdef bint scaled, carries, linked, calibrates, doubts
    # By group.
    cdef double* experience
    cdef Py_ssize_t* began
    cdef double* fades
    cdef signed char* free
    cdef int _hold_back(self, Py_ssize_t m, double reference, double* etas) except -1 nogil
    cdef double _eta_of(self, double mean) except? -1 nogil
    cdef double _reference(self, const double* etas) noexcept nogil
    cdef void _experience(self, Py_ssize_t m, double y) noexcept nogil
    cdef public double dispersion, dispersion_weight
    cdef double all_lam, all_lam_max, all_size
    cdef double* model
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
    cdef bint is_asked, is_blended, is_summarised
    cdef signed char* used

    cdef int _evaluate(self, Py_ssize_t i) except -1 nogil
    cdef bint _was_asked(self, Py_ssize_t n, const double* x) noexcept nogil
    cdef int _evaluate_experts(self, double y, double weight, double least, const double* etas) except -1 nogil
    cdef double _gain(self, double y, double weight, double least, const double* averages) except? -1 nogil
    cdef int _learn_carry(self, double y, double weight, double least, double eta, const double* lags) except -1 nogil
    cdef double _carried(self, const double* lags, double eta) noexcept nogil
    cdef double* _scratch(self) noexcept nogil
    cdef double _own_eta(self, const double* x, double* row) except? -1 nogil
    cdef int _learn_all(self, Py_ssize_t n) except -1 nogil
    cdef int _learn_group(self, Py_ssize_t m, Batch* batch) except -1 nogil
    cdef int _learn_share(self, bint second) except -1 nogil
    cdef int _restart_in_turn(self) except -1 nogil
    cdef int _restart(self, Py_ssize_t first, Py_ssize_t end, Py_ssize_t turn) except -1 nogil
    cdef int _predict_all(self, const double* row, double* etas) except -1 nogil
    cdef double _loss_of(self, double y, double weight, double least, double eta) except? -1 nogil
    cdef double _prediction(self, const double* etas, double* pulls) noexcept nogil
    cdef void _hold(self, const double* etas, double* pulls) noexcept nogil
    cdef double _average(self, const double* weights, const double* pulls) noexcept nogil
    cdef void _measure_noise(self, double deviance) noexcept nogil
    cdef int _summarise(self) except -1 nogil
    cdef int _outline(self) except -1 nogil
    cdef int blend(self) except -1 nogil
    cdef int _add_models(self, const double* weights) except -1 nogil
    cdef double _in_units(self, double loss, double weight, double least) noexcept nogil
    cdef Py_ssize_t _n_active(self) except -1 nogil
