"""Names for the codes of an answer."""

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM

cdef extern from "Python.h":
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
