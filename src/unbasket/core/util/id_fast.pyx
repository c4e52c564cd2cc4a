"""Fast paths for lists of ids: a type check of all of them, and named tuples of ids and numbers."""

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow)
    object PyType_GenericAlloc(PyTypeObject *kind, Py_ssize_t size)


def named(type kind, list pairs, list names):
    """Turn pairs (code, number) into named tuples (`names[code]`, number) of type `kind`.

    They are filled in place: the constructor of a named tuple takes half a microsecond, and an answer has ten.
    """
    cdef list answer = []
    cdef Py_ssize_t code
    assert issubclass(kind, tuple), "no type of tuple"
    for code, number in pairs:
        pair = PyType_GenericAlloc(<PyTypeObject *> kind, 2)
        name = names[code]
        Py_INCREF(name)  # PyTuple_SET_ITEM steals references
        Py_INCREF(number)
        PyTuple_SET_ITEM(pair, 0, name)
        PyTuple_SET_ITEM(pair, 1, number)
        answer.append(pair)
    return answer


def are_plain(list names):
    """Return whether all ids are 64-bit ints or nonempty ASCII texts, and of no subclass of int or str."""
    cdef int overflow = 0
    for name in names:
        if type(name) is int:
            PyLong_AsLongLongAndOverflow(name, &overflow)
            if overflow:
                return False
        elif type(name) is not str or not PyUnicode_IS_ASCII(name) or PyUnicode_GET_LENGTH(name) == 0:
            return False
    return True
