from cpython.pythread cimport PyThread_type_lock


#: Work that two threads do together: `second` says which of them calls. -1 is an error.
ctypedef int (*Work)(void* what, bint second) noexcept nogil


cdef extern from *:
    """
    #include <fenv.h>

    /* All in one order that every thread agrees on. */
    #if defined(_MSC_VER)
    #include <intrin.h>
    #define STREAMLASSO_LOOK(at) _InterlockedOr((at), 0)
    #define STREAMLASSO_ADD(at, n) _InterlockedExchangeAdd((at), (n))
    #define STREAMLASSO_SWAP(at, to) _InterlockedExchange((at), (to))
    static inline int streamlasso_turn(volatile long *at, long from, long to) {
        return _InterlockedCompareExchange(at, to, from) == from;
    }
    #else
    #define STREAMLASSO_LOOK(at) __atomic_load_n((at), __ATOMIC_SEQ_CST)
    #define STREAMLASSO_ADD(at, n) __atomic_fetch_add((at), (n), __ATOMIC_SEQ_CST)
    #define STREAMLASSO_SWAP(at, to) __atomic_exchange_n((at), (to), __ATOMIC_SEQ_CST)
    static inline int streamlasso_turn(volatile long *at, long from, long to) {
        return __atomic_compare_exchange_n(at, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    #endif

    /* Another thread that could run on this core goes first. */
    #if defined(_WIN32)
    __declspec(dllimport) int __stdcall SwitchToThread(void);
    #define STREAMLASSO_YIELD() SwitchToThread()
    #else
    #include <sched.h>
    #define STREAMLASSO_YIELD() sched_yield()
    #endif
    """
    #: The number there
    long look "STREAMLASSO_LOOK"(long* at) noexcept nogil
    #: += n; what was there before
    long add "STREAMLASSO_ADD"(long* at, long n) noexcept nogil
    #: = to; what was there before
    long swap "STREAMLASSO_SWAP"(long* at, long to) noexcept nogil
    #: = to, if `from` was there; whether it was
    bint turn "streamlasso_turn"(long* at, long from_, long to) noexcept nogil
    void give_way "STREAMLASSO_YIELD"() noexcept nogil
    #: Rounding, subnormal numbers
    ctypedef struct fenv_t:
        pass
    int fegetenv(fenv_t* env) noexcept nogil
    int fesetenv(const fenv_t* env) noexcept nogil


#: One who waits: on the bell, if it is asleep.
cdef struct Waiter:
    long asleep
    PyThread_type_lock bell


cdef int together(Work work, void* what) except -1 nogil
