"""Memory that comes zeroed and is zeroed before it is freed: buffers, a slab allocator, jagged and growable arrays."""
