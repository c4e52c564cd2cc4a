"""Fast paths for ids and events: type checks, distinct ids, learns as columns of codes, and named tuples."""

from cpython.object cimport PyObject_Hash, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t
from libc.string cimport memset

import numpy as np

from unbasket.core.util.sharded_dict cimport ShardedDict

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow)
    object PyType_GenericAlloc(PyTypeObject *kind, Py_ssize_t size)

cdef extern from *:
    """
    /* Since Python 3.14, a tuple keeps its hash; zeroed memory would be the hash 0. */
    #if PY_VERSION_HEX >= 0x030E0000
        #define clear_hash(filled) (((PyTupleObject *) (filled))->ob_hash = -1)
    #else
        #define clear_hash(filled)
    #endif
    """
    void clear_hash(object filled)

cdef enum:
    FEW = 64  # ids that `distinct` compares without a dict


def named(type kind, list pairs, list names):
    """Turn pairs (code, number) into named tuples (`names[code]`, number) of type `kind`."""
    cdef Py_ssize_t code
    assert issubclass(kind, tuple), "no type of tuple"
    return [_tuple_of(kind, (names[code], number)) for code, number in pairs]


def are_of_type(list names, kind):
    """Return whether all ids are of a type, `int` or `str`, and of no subclass of it."""
    for name in names:
        if type(name) is not kind:
            return False
    return True


def have_types(events, types):
    """Return whether all ids of events have these types: of users, baskets and items; False for unusual events.

    A learn is (user, items, basket, time), a forget (user, basket or None, item or None).
    """
    cdef tuple event
    user, basket, item = types
    for named_tuple in events:
        assert isinstance(named_tuple, tuple), "no tuple"
        event = <tuple> named_tuple  # without a check, which would refuse a subclass
        if type(event[0]) is not user:
            return False
        if len(event) == 4:
            if type(event[2]) is not basket or not are_of_type(event[1], item):
                return False
        elif len(event) == 3:
            if event[1] is not None and type(event[1]) is not basket:
                return False
            if event[2] is not None and type(event[2]) is not item:
                return False
        else:
            return False
    return True


def coded_learns(events, ShardedDict users, ShardedDict items, add_user, add_item, claim_basket):
    """Return learns as columns: codes of users, keys of baskets, times, numbers of items, and codes of all items.

    The functions return the codes of ids that are new, and the key of a basket whose id is a text.
    """
    cdef list learns = list(events)
    cdef tuple event
    cdef Py_ssize_t i, bought = 0, count = len(learns)
    owners, keys, times, sizes = np.empty((4, count), np.int64)
    cdef int64_t[::1] owner = owners, key = keys, time = times, size = sizes
    for i in range(count):
        event = <tuple> learns[i]  # without a check, which would refuse a subclass
        found = users.shard_of(event[0]).get(event[0])
        owner[i] = add_user(event[0]) if found is None else found
        key[i] = event[2] if isinstance(event[2], int) else claim_basket(event[2])
        time[i] = INT64_MIN if event[3] is None else event[3]
        size[i] = len(<list> event[1])
        bought += size[i]
    codes = np.empty(bought, np.uint32)
    cdef uint32_t[::1] code = codes
    bought = 0
    for i in range(count):
        for name in <list> (<tuple> learns[i])[1]:
            found = items.shard_of(name).get(name)
            code[bought] = add_item(name) if found is None else found
            bought += 1
    return owners, keys, times, sizes, codes


def distinct(list names):
    """Return ids without repetitions, in their order.

    A few are found in a table on the stack: a dict would take ten times as long.
    """
    cdef uint8_t[4 * FEW] numbers  # by hash, and counted from 1
    cdef Py_hash_t[FEW] hashes
    cdef Py_ssize_t i, slot, count = len(names)
    if count > FEW:
        return list(dict.fromkeys(names))
    memset(numbers, 0, sizeof(numbers))
    for i in range(count):
        hashes[i] = PyObject_Hash(names[i])
        slot = hashes[i] & (4 * FEW - 1)
        while numbers[slot] != 0:
            if hashes[numbers[slot] - 1] == hashes[i] and names[numbers[slot] - 1] == names[i]:
                return list(dict.fromkeys(names))
            slot = (slot + 1) & (4 * FEW - 1)
        numbers[slot] = <uint8_t> (i + 1)
    return names.copy()


def are_plain(list names):
    """Return whether all ids are 64-bit ints or nonempty ASCII texts, and of no subclass of int or str."""
    for name in names:
        if not _is_plain(name):
            return False
    return True


cdef bint _is_plain(name) except -1:
    cdef int overflow = 0
    if type(name) is int:
        PyLong_AsLongLongAndOverflow(name, &overflow)
        return not overflow
    return type(name) is str and PyUnicode_IS_ASCII(name) and PyUnicode_GET_LENGTH(name) > 0


def plain_learn(type kind, user, items, basket, time, Py_ssize_t most):
    """Return the named tuple of a learn as nearly all are; None if an argument is unusual or invalid.

    All ids are plain, the items a list of 1 to `most` ids, and the time None or a 64-bit int above INT64_MIN.
    """
    cdef int overflow = 0
    assert issubclass(kind, tuple), "no type of tuple"
    if type(items) is not list or not 0 < len(<list> items) <= most:
        return None
    if not (_is_plain(user) and _is_plain(basket) and are_plain(items)):
        return None
    if time is not None and (
        type(time) is not int or PyLong_AsLongLongAndOverflow(time, &overflow) == INT64_MIN or overflow
    ):
        return None
    return _tuple_of(kind, (user, distinct(items), basket, time))


cdef tuple _tuple_of(type kind, tuple fields):
    """Return a named tuple with these fields; its constructor would take half a microsecond."""
    cdef Py_ssize_t i
    filled = PyType_GenericAlloc(<PyTypeObject *> kind, len(fields))
    clear_hash(filled)
    for i in range(len(fields)):
        Py_INCREF(fields[i])  # PyTuple_SET_ITEM steals references
        PyTuple_SET_ITEM(filled, i, fields[i])
    return <tuple> filled
