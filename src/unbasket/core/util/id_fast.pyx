"""Names, which codes stand for elsewhere: whether many are as they should be, and those of an answer."""

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow)
    object PyType_GenericAlloc(PyTypeObject *kind, Py_ssize_t size)


def named(type kind, list pairs, list names):
    """Pairs of a code and a figure as pairs of a name and the figure, of a named tuple's kind.

    They are made in place: a named tuple's own constructor takes half a microsecond, and an answer has ten of them.
    """
    cdef list answer = []
    cdef Py_ssize_t code
    assert issubclass(kind, tuple), "no kind of tuple"
    for code, figure in pairs:
        pair = PyType_GenericAlloc(<PyTypeObject *> kind, 2)
        name = names[code]
        Py_INCREF(name)  # a tuple takes over the references that it is given
        Py_INCREF(figure)
        PyTuple_SET_ITEM(pair, 0, name)
        PyTuple_SET_ITEM(pair, 1, figure)
        answer.append(pair)
    return answer


def are_plain(list names):
    """Whether all of these are ints of 64 bits, or texts of ASCII that are not empty, and no subclass of either."""
    cdef int overflow = 0
    for name in names:
        if type(name) is int:
            PyLong_AsLongLongAndOverflow(name, &overflow)
            if overflow:
                return False
        elif type(name) is not str or not PyUnicode_IS_ASCII(name) or PyUnicode_GET_LENGTH(name) == 0:
            return False
    return True
