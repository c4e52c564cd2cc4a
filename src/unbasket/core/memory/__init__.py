"""Memory that is zeroed when allocated and when freed: buffers, a slab allocator, jagged and growable arrays."""
