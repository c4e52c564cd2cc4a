"""Memory that is zeroed when allocated and when freed: buffers, a slab allocator, jagged and growable arrays."""

from unbasket.core.memory import growable, jagged

GrowableArray = growable.GrowableArray
JaggedArray = jagged.JaggedArray
