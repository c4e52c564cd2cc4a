class SlabAllocator:
    segment_count: int
    idle_count: int
    used: int
