# cython: language_level=3
"""The loops that everything dense is made of. The C files say what each of them does."""


cdef extern from "fours.h":
    pass


cdef extern from "sums.h" nogil:
    void axpy(Py_ssize_t n, double a, const double* x, double* y) noexcept
    void axpy4(
        Py_ssize_t n, const double* a, const double* x0, const double* x1, const double* x2, const double* x3, double* y
    ) noexcept
    void add_rows(Py_ssize_t n, Py_ssize_t k, const double* const* rows, const double* a, double* y) noexcept
    void add_weighted(Py_ssize_t k, Py_ssize_t n, const double* weight, const double* A, double* y) noexcept
    void subtract_rows(
        Py_ssize_t k, const Py_ssize_t* which, Py_ssize_t p, const double* S, Py_ssize_t n_rows, const double* rows,
        const double* signed_rows, const double* b, double* out
    ) noexcept
    void subtract_centred(
        Py_ssize_t n, Py_ssize_t p, const double* a, const double* rows, const double* origin, double* y
    ) noexcept
    void see_row(Py_ssize_t n, const double* x, double step, double k, double* mean, double* scatter) noexcept
    void take_row(
        Py_ssize_t n, const double* x, double step, double root, double sign, double dt, double* mean, double* z,
        double* signed_z, double* c
    ) noexcept


cdef extern from "products.h" nogil:
    double dot(Py_ssize_t n, const double* a, const double* b) noexcept
    void dot4(Py_ssize_t n, const double* x, Py_ssize_t ld, const double* y, double* out) noexcept
    double long_dot(Py_ssize_t n, const double* a, const double* b) noexcept
    double weigh(Py_ssize_t n, const double* a, double* x) noexcept
    double centred_dot(Py_ssize_t n, const double* x, const double* centre, const double* b) noexcept
    void centred_product(Py_ssize_t n, const double* a, const double* x, double centre, double* z) noexcept
    double centre_row(Py_ssize_t n, const double* x, const double* centre, const double* b, double* z) noexcept
    void centred_column(Py_ssize_t n, Py_ssize_t step, const double* x, double centre, double* out) noexcept
    double sum_of_sizes(Py_ssize_t n, const double* x) noexcept
    void dot_rows(Py_ssize_t n, Py_ssize_t k, const double* const* rows, const double* y, double* out) noexcept
    void matrix_times(
        Py_ssize_t k, Py_ssize_t n, Py_ssize_t ld, const double* A, const double* y, double* out
    ) noexcept
    double symmetric_times(Py_ssize_t n, const double* P, const double* z, double* q) noexcept
    void symmetric_subtract(Py_ssize_t n, double gain, const double* q, double* P) noexcept


cdef extern from "block.h" nogil:
    void gather_row(
        Py_ssize_t at, Py_ssize_t k, const Py_ssize_t* members, Py_ssize_t p, const double* S, Py_ssize_t n_rows,
        const double* rows, const double* signed_rows, double* out
    ) noexcept
    Py_ssize_t factor_block(
        Py_ssize_t k, const Py_ssize_t* members, Py_ssize_t p, const double* S, Py_ssize_t n_rows, const double* rows,
        const double* signed_rows, const double* ridge, double tolerance, Py_ssize_t ld, double* U, double* d,
        double* inverse
    ) noexcept
    void drop_column(Py_ssize_t k, Py_ssize_t q, Py_ssize_t ld, double* U) noexcept
    void eliminate(Py_ssize_t n, double p, double beta, double* row, double* x) noexcept
    void long_eliminate(Py_ssize_t n, double p, double beta, double* row, double* x) noexcept
    void long_solve_lower(Py_ssize_t k, Py_ssize_t ld, const double* U, double* b) noexcept
    void long_solve_upper(Py_ssize_t k, Py_ssize_t ld, const double* U, double* b) noexcept


cdef extern from "elementwise.h" nogil:
    void roots(Py_ssize_t n, const double* x, double* out) noexcept
    void hold(Py_ssize_t n, const double* x, double low, double high, double* out) noexcept
    void deviations(
        Py_ssize_t n, const double* scatter, const double* mean, double inverse, double* out
    ) noexcept
    double largest_ratio(Py_ssize_t n, const double* g, const double* v, const signed char* among) noexcept
    bint any_beyond(Py_ssize_t n, const double* g, const double* tau, const double* tol) noexcept
    Py_ssize_t twice_larger(Py_ssize_t n, const double* x, double than) noexcept
    bint all_finite(Py_ssize_t n, const double* x) noexcept
    void exps(Py_ssize_t n, const double* x, double* out) noexcept
    void log1ps(Py_ssize_t n, double* x) noexcept
    void logistic_slopes(
        Py_ssize_t n, const double* y, const double* eta, double* slope, double* curvature
    ) noexcept
    void in_units(
        Py_ssize_t n, const double* x, double least, double unit, double cap, double weight, double* loss
    ) noexcept
    void likelihoods(Py_ssize_t n, const double* loss, double most, double* out) noexcept
    void standardise(
        Py_ssize_t n, const double* x, const double* mean, const double* variance, double root, double least,
        double bound, double* z
    ) noexcept
    void shift_features(
        Py_ssize_t n, const double* z, double u, double rate, double low, double high, double keep, const double* shift,
        const double* table, double steps, double* usual, double* moved, double* total
    ) noexcept
