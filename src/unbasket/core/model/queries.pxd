from unbasket.core.model.fold cimport Rule
from unbasket.core.model.workspace cimport FoldWorkspace
from unbasket.core.model.vector cimport Vector


cdef Vector rounded(FoldWorkspace space, Rule rule)
