from unbasket.core.fold cimport Rule
from unbasket.core.space cimport FoldSpace
from unbasket.core.vector cimport Vector


cdef Vector rounded(FoldSpace space, Rule rule)
