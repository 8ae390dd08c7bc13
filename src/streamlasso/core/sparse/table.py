# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The features that a model knows, by their keys: an open-addressing table, and their states in records.

A key is a column's index, or the hash of a name (`hashed`). Its tag, 32 bits mixed with a secret that nobody outside
the process knows, says where its slot is: at the tag's share of the slots or soon after it. Slots so are nearly in the
order of their tags, and a larger table is filled by one pass along the memory. Records are numbered in order of arrival
and lie in chunks.

A row looks its keys up together: the slots of all are prefetched, then the records that the tags point to, so that
misses overlap; only then are keys compared.

With `most` features there, the least useful of SAMPLE that the hand points at makes room: the one with the least
evidence (the first expert's r^2, see `updates.pxd`) per row since it was last seen. One in the current row stays.
"""

import os

import cython
import numpy as np
from cython.cimports.libc.stdint import uint32_t, uint64_t
from cython.cimports.libc.stdlib import calloc, free, realloc
from cython.cimports.libc.string import memcpy, memset

#: Slots in use, at most; and how many there are after growing, relative to before. Memory per feature is
#: 8 / LOAD to 8 GROWTH / LOAD bytes above that of its record.
LOAD = cython.declare(cython.double, 0.8)
GROWTH = cython.declare(cython.double, 1.25)
FEWEST_SLOTS = cython.declare(cython.Py_ssize_t, 64)
#: Features that are compared when one has to go.
SAMPLE = cython.declare(cython.Py_ssize_t, 16)
#: The numbers of records have 32 bits.
MOST_RECORDS = 2**31 - 2


@cython.cclass
class Table:
    """Up to `most` features with `width` floats each."""

    def __cinit__(self, width: cython.Py_ssize_t, most: cython.Py_ssize_t):
        self.most, self.stride = most, HEAD + width
        self.n = self.n_chunks = self.room = self.hand = 0
        self.chunks = cython.NULL
        self.secret = int.from_bytes(os.urandom(8), "little")
        self.n_slots = FEWEST_SLOTS
        self.slots = cython.cast(cython.pointer[Slot], calloc(self.n_slots, cython.sizeof(Slot)))
        if self.slots == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        i: cython.Py_ssize_t
        for i in range(self.n_chunks):
            free(self.chunks[i])
        free(self.chunks)
        free(self.slots)

    def __len__(self):
        return self.n

    @property
    def nbytes(self):
        """Bytes of slots and records."""
        return self.n_slots * cython.sizeof(Slot) + self.n_chunks * (
            CHUNK * self.stride * cython.sizeof(cython.float) + cython.sizeof(cython.p_float)
        )

    @property
    def longest(self):
        """How far a slot is from where its search begins, at most."""
        i: cython.Py_ssize_t
        far: cython.Py_ssize_t
        most: cython.Py_ssize_t = 0
        for i in range(self.n_slots):
            if self.slots[i].place != 0:
                far = i - self._home_of(self.slots[i].tag)
                most = max(most, far if far >= 0 else far + self.n_slots)
        return most

    # --- looking up -------------------------------------------------------------------------------------------------

    def find(self, entries, n):
        """Tag and record of each entry."""
        i: cython.Py_ssize_t
        record: cython.p_float
        for i in range(n):
            entries[i].tag = self._tag_of(entries[i].key)
            wide_prefetch(self.slots + self._home_of(entries[i].tag))
        for i in range(n):
            record = self._first_of(entries[i].tag)
            entries[i].record = record
            if record != cython.NULL:
                wide_prefetch(record)
                wide_prefetch(record + 16)
                wide_prefetch(record + self.stride - 1)
        for i in range(n):
            record = entries[i].record
            if record != cython.NULL and key_of(record) != entries[i].key:
                entries[i].record = self._found(entries[i].key, entries[i].tag)

    def _found(self, key, tag):
        """The record of a key, or NULL."""
        slot: cython.Py_ssize_t = self._slot_of(key, tag)
        return self.record(self.slots[slot].place - 1) if self.slots[slot].place != 0 else cython.NULL

    def _tag_of(self, key):
        """A different one in every process."""
        h: uint64_t = key ^ self.secret
        h = (h ^ (h >> 32)) * cython.cast(uint64_t, 0xD6E8FEB86659FD93)
        h = (h ^ (h >> 32)) * (self.secret | 1)
        h = (h ^ (h >> 29)) * cython.cast(uint64_t, 0xD6E8FEB86659FD93)
        return cython.cast(uint32_t, h >> 32)

    def _home_of(self, tag):
        return (cython.cast(uint64_t, tag) * self.n_slots) >> 32

    def _first_of(self, tag):
        """The first record with this tag, without a look at its key; NULL where there is none. It is mostly within
        four slots, which are compared without branches that could go either way."""
        i: cython.Py_ssize_t = self._home_of(tag)
        k: cython.Py_ssize_t = 3
        near: cython.pointer[Slot] = self.slots + i
        if i + 4 <= self.n_slots:
            k = 2 if near[2].tag == tag else k
            k = 1 if near[1].tag == tag else k
            k = 0 if near[0].tag == tag else k
            if near[k].tag == tag and near[k].place != 0:
                return self.record(near[k].place - 1)
        while self.slots[i].place != 0 and self.slots[i].tag != tag:
            i = i + 1 if i + 1 < self.n_slots else 0
        return self.record(self.slots[i].place - 1) if self.slots[i].place != 0 else cython.NULL

    def _slot_of(self, key, tag):
        """The slot of a key, or the empty one where the search for it ends."""
        i: cython.Py_ssize_t = self._home_of(tag)
        while self.slots[i].place != 0:
            if self.slots[i].tag == tag and key_of(self.record(self.slots[i].place - 1)) == key:
                break
            i = i + 1 if i + 1 < self.n_slots else 0
        return i

    def record(self, place):
        return self.chunks[place // CHUNK] + (place % CHUNK) * self.stride

    # --- coming and going -------------------------------------------------------------------------------------------

    def insert(self, key, tag, row):
        """The record of a key; a new one is all 0 but for key and row. NULL where there is no room."""
        place: cython.Py_ssize_t
        old: uint64_t
        record: cython.p_float
        slot: cython.Py_ssize_t = self._slot_of(key, tag)
        if self.slots[slot].place != 0:
            return self.record(self.slots[slot].place - 1)
        if self.n < self.most:
            if self.n == self.room:
                self._grow_chunks()
            if self.n + 1 > LOAD * self.n_slots:
                self._grow_slots(cython.cast(cython.Py_ssize_t, self.n_slots * GROWTH) + 1)
                slot = self._slot_of(key, tag)
            place = self.n
            self.n += 1
        else:
            place = self._least_useful(row)
            if place < 0:
                return cython.NULL
            old = key_of(self.record(place))
            self._take_out(self._slot_of(old, self._tag_of(old)))
            slot = self._slot_of(key, tag)
        record = self.record(place)
        memset(record, 0, self.stride * cython.sizeof(cython.float))
        memcpy(record, cython.address(key), 8)
        last_row(record)[0] = row
        self.slots[slot].tag, self.slots[slot].place = tag, cython.cast(uint32_t, place + 1)
        return record

    def _put(self, tag, place):
        """The first empty slot from the tag's place on."""
        i: cython.Py_ssize_t = self._home_of(tag)
        new: Slot
        new.tag, new.place = tag, cython.cast(uint32_t, place + 1)
        while self.slots[i].place != 0:
            i = i + 1 if i + 1 < self.n_slots else 0
        self.slots[i] = new

    def _take_out(self, slot):
        """Empty a slot; those after it that would no longer be found move up."""
        hole: cython.Py_ssize_t = slot
        i: cython.Py_ssize_t = slot
        home: cython.Py_ssize_t
        while True:
            i = i + 1 if i + 1 < self.n_slots else 0
            if self.slots[i].place == 0:
                break
            home = self._home_of(self.slots[i].tag)
            # Cyclically, is `home` at or before the hole?
            if (hole <= i and (home <= hole or home > i)) or (hole > i and home <= hole and home > i):
                self.slots[hole] = self.slots[i]
                hole = i
        self.slots[hole].place = 0

    def _least_useful(self, row):
        """The record that makes room, or -1 where all that were compared are in this row."""
        i: cython.Py_ssize_t
        best: cython.Py_ssize_t = -1
        use: cython.double
        least: cython.double = 0.0
        record: cython.p_float
        for i in range(min(SAMPLE, self.n)):
            record = self.record(self.hand)
            if last_row(record)[0] != row:
                use = (state_of(record)[8] * state_of(record)[8] + 1e-9) / cython.cast(
                    uint32_t, row - last_row(record)[0]
                )
                if best < 0 or use < least:
                    best, least = self.hand, use
            self.hand = self.hand + 1 if self.hand + 1 < self.n else 0
        return best

    def _grow_slots(self, n_slots):
        i: cython.Py_ssize_t
        n_old: cython.Py_ssize_t = self.n_slots
        old: cython.pointer[Slot] = self.slots
        new: cython.pointer[Slot] = cython.cast(cython.pointer[Slot], calloc(n_slots, cython.sizeof(Slot)))
        if new == cython.NULL:
            raise MemoryError
        self.slots, self.n_slots = new, n_slots
        for i in range(n_old):
            if old[i].place != 0:
                self._put(old[i].tag, old[i].place - 1)
        free(old)
        return 0

    def _grow_chunks(self):
        self.chunks = cython.cast(
            cython.pp_float, resized(self.chunks, (self.n_chunks + 1) * cython.sizeof(cython.p_float))
        )
        self.chunks[self.n_chunks] = cython.cast(
            cython.p_float, resized(cython.NULL, CHUNK * self.stride * cython.sizeof(cython.float))
        )
        self.n_chunks += 1
        self.room += CHUNK
        return 0

    # --- as arrays --------------------------------------------------------------------------------------------------

    def records(self):
        """All records in order, as they lie: (feature, HEAD + width) numbers of 32 bits."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.n
        out = np.empty((n, self.stride), dtype=np.float32)
        rows: cython.float[:, ::1] = out
        for i in range(n):
            memcpy(cython.address(rows[i, 0]), self.record(i), self.stride * cython.sizeof(cython.float))
        return out

    def keys(self):
        """The keys of all records, in order."""
        i: cython.Py_ssize_t
        n: cython.Py_ssize_t = self.n
        out = np.empty(n, dtype=np.uint64)
        each: uint64_t[::1] = out
        for i in range(n):
            each[i] = key_of(self.record(i))
        return out

    def fill(self, records, hand: cython.Py_ssize_t):
        """An empty table takes what `records` gave. Keys must differ."""
        i: cython.Py_ssize_t
        tag: uint32_t
        key: uint64_t
        rows: cython.const[cython.float][:, ::1]
        if records.ndim != 2 or records.shape[1] != self.stride or records.dtype != np.float32:
            raise ValueError("the features do not fit the settings")
        if len(records) > self.most or not 0 <= hand <= max(len(records) - 1, 0):
            raise ValueError("the features do not fit the settings")
        if not np.all(np.isfinite(records[:, HEAD:])) or not np.all((records[:, 2] > 0) & np.isfinite(records[:, 2])):
            raise ValueError("the features hold numbers that no row can have made")
        rows = np.ascontiguousarray(records)
        for i in range(rows.shape[0]):
            key = key_of(cython.address(rows[i, 0]))
            tag = self._tag_of(key)
            if self.slots[self._slot_of(key, tag)].place != 0:
                raise ValueError("a feature is there twice")
            memcpy(self.insert(key, tag, 0), cython.address(rows[i, 0]), self.stride * cython.sizeof(cython.float))
        self.hand = hand


def resized(old, size):
    """Memory for so many bytes, which begins with the old ones."""
    new: cython.p_void = realloc(old, size)
    if new == cython.NULL:
        raise MemoryError
    return new


# --- names ------------------------------------------------------------------------------------------------------------


def hashed(k0, k1, text, length, after):
    """SipHash-1-3 of a name: without the key (k0, k1) nobody can choose names that collide.

    `after` says that the 8 bytes in front of it can be read, so that its end is read as one number.
    """
    i: cython.Py_ssize_t
    m: uint64_t
    v: uint64_t[4]
    v[0] = k0 ^ cython.cast(uint64_t, 0x736F6D6570736575)
    v[1] = k1 ^ cython.cast(uint64_t, 0x646F72616E646F6D)
    v[2] = k0 ^ cython.cast(uint64_t, 0x6C7967656E657261)
    v[3] = k1 ^ cython.cast(uint64_t, 0x7465646279746573)
    for i in range(length // 8):
        memcpy(cython.address(m), text + 8 * i, 8)
        v[3] ^= m
        _sip_round(v)
        v[0] ^= m
    m = 0
    if after or length >= 8:
        memcpy(cython.address(m), text + length - 8, 8)
        m = m >> (8 * (8 - length % 8)) if length % 8 > 0 else 0
    else:
        for i in range(length):
            m |= cython.cast(uint64_t, text[i]) << (8 * i)
    m |= cython.cast(uint64_t, length) << 56
    v[3] ^= m
    _sip_round(v)
    v[0] ^= m
    v[2] ^= 0xFF
    for i in range(3):
        _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _turned(x: uint64_t, by: cython.int) -> uint64_t:
    return (x << by) | (x >> (64 - by))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _sip_round(v: cython.pointer[uint64_t]) -> cython.void:
    v[0] += v[1]
    v[2] += v[3]
    v[1] = _turned(v[1], 13) ^ v[0]
    v[3] = _turned(v[3], 16) ^ v[2]
    v[0] = _turned(v[0], 32)
    v[2] += v[1]
    v[0] += v[3]
    v[1] = _turned(v[1], 17) ^ v[2]
    v[3] = _turned(v[3], 21) ^ v[0]
    v[2] = _turned(v[2], 32)


def hash_of(name: bytes, k0: uint64_t, k1: uint64_t):
    """`hashed`, for Python: the test compares it with published values."""
    text: cython.p_char = name
    return hashed(k0, k1, cython.cast(cython.pointer[cython.const[cython.uchar]], text), len(name), False)
