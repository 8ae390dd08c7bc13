#: What a step notes of a row. Doubles only: an array (row, field) of doubles is an array of records.
cdef struct Record:
    double eta
    double loss
    double slope
    double lam
    double lam_max
    double n_active
    double effective_size
    double status

#: How a step went; `ADVICE` has the words.
cdef enum:
    OK
    SINGULAR
    UNFINISHED
    WAITING
    N_STATUSES


cdef inline Record* as_records(double* notes) noexcept nogil:
    return <Record*> notes
