"""The k nearest neighbors of a query (paper, section 2.2).

A search adds up the dot products of the query with all users that share an item with it, then passes once over all
users and keeps those with a distance below a limit. The limit is a norm that at least k users stay below: in Euclidean
space a small vector with no item in common can be nearer than a large one with many. The k nearest are selected among
the few users that are kept. The search goes shard by shard; the users found so far lower the limit.

Threads share the shards through an atomic counter, and their candidates are merged. All arithmetic is exact, in
integers, so neither shards nor threads change a result.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from functools import partial

from unbasket.core.memory.buffers cimport give_back, grown, nonzero_bytes
from unbasket.core.index.index cimport Index
from unbasket.core.index.shard cimport BLOCK_ROWS, Shard, Posting
from unbasket.core.util.topn cimport Candidate, smallest_first
from unbasket.core.search.parallel cimport fork_join, next_index

cdef extern from "index/simd_threshold.h" nogil:
    unsigned rows_below(int64_t limit, const int64_t *norm, const int64_t *dot)
    int trailing_zeros "__builtin_ctz"(unsigned bits)


@cython.final
cdef class Scan:
    """The workspace of one thread in one search: dot products and candidates. All zero between searches."""

    def __dealloc__(self):
        give_back(self.dot, self.row_room * sizeof(int64_t))
        give_back(self.candidates, self.room * sizeof(Candidate))

    cdef int widen(self, Index index, Py_ssize_t k) except -1 nogil:
        """Make room for the rows of a shard and the candidates of a search."""
        cdef Py_ssize_t rows = min(index.shard_size, index.slot_end) + BLOCK_ROWS, most = min(k, index.slot_end)
        cdef Py_ssize_t room = most + max(most, rows)  # those found, and a shard or another scan
        if rows > self.row_room:
            rows += rows // 4
            self.dot = <int64_t *> grown(self.dot, self.row_room, rows, sizeof(int64_t))
            self.row_room = rows
        if room > self.room:
            room += room // 4
            self.candidates = <Candidate *> grown(self.candidates, self.room, room, sizeof(Candidate))
            self.room = room

    cdef int search_shard(self, Shard shard, Py_ssize_t first_slot, const KnnQuery *query) except -1 nogil:
        """Add the users of a shard to the candidates."""
        cdef Py_ssize_t block, first, row, found = self.found
        cdef int64_t limit = self.limit
        cdef unsigned below
        cdef int64_t *dot = self.dot
        cdef const int64_t *norm = shard.norm
        self.accumulate(shard, query)
        for block in range((shard.end + BLOCK_ROWS - 1) // BLOCK_ROWS):
            first = block * BLOCK_ROWS
            below = rows_below(limit, norm + first, dot + first)
            while below:
                row = first + trailing_zeros(below)
                below &= below - 1
                if norm[row] != 0 and shard.owner[row] != query.user:
                    self.candidates[found] = Candidate(
                        norm[row] - 2 * dot[row], shard.owner[row], <uint32_t> (first_slot + row)
                    )
                    found += 1
            memset(dot + first, 0, BLOCK_ROWS * sizeof(int64_t))
        self.found = found
        return self.keep_nearest(query)

    cdef int accumulate(self, Shard shard, const KnnQuery *query) except -1 nogil:
        """Add up the dot products of the query with the users of a shard that share an item with it."""
        cdef Py_ssize_t i, j
        cdef const Posting *postings
        cdef int64_t weight
        cdef int64_t *dot = self.dot
        cdef uint32_t item
        for i in range(query.length):
            prefetch(&shard.postings.rows[query.entries[i].item], 1)
        for i in range(query.length):
            if i + 1 < query.length:
                item = query.entries[i + 1].item
                prefetch(shard.postings.first(item), shard.postings.length(item) * sizeof(Posting))
            item, weight = query.entries[i].item, query.entries[i].weight
            postings = <const Posting *> shard.postings.first(item)
            for j in range(shard.postings.length(item)):
                assert postings[j].row < self.row_room, "no such row"
                dot[postings[j].row] += weight * postings[j].weight

    cdef int keep_nearest(self, const KnnQuery *query) except -1 nogil:
        """Keep the k nearest candidates, and lower the limit to the farthest of them."""
        cdef Py_ssize_t i
        cdef int64_t farthest
        if self.found <= query.k:
            return 0
        smallest_first(self.candidates, self.found, query.k, query.order)
        for i in range(query.k, self.found):
            self.candidates[i] = Candidate(0, 0, 0)
        self.found = query.k
        farthest = self.candidates[0].key
        for i in range(1, query.k):
            farthest = max(farthest, self.candidates[i].key)
        self.limit = farthest + 1  # not below `farthest` itself: a user at that distance may win the tie

    cdef int merge(self, Scan other, const KnnQuery *query) except -1 nogil:
        """Move the candidates that another scan found in other shards here."""
        cdef Py_ssize_t i
        assert self.found + other.found <= self.room, "no room"
        for i in range(other.found):
            self.candidates[self.found + i] = other.candidates[i]
        self.found += other.found
        other.clear()
        return self.keep_nearest(query)

    cdef int clear(self) except -1 nogil:
        cdef Py_ssize_t i
        for i in range(self.found):
            self.candidates[i] = Candidate(0, 0, 0)
        self.found = 0

    cdef Py_ssize_t residue(self) noexcept nogil:
        """Count the bytes that are not zero; between searches there are none."""
        cdef size_t dots = nonzero_bytes(self.dot, self.row_room * sizeof(int64_t))
        return self.found + dots + nonzero_bytes(self.candidates, self.room * sizeof(Candidate))


@cython.final
cdef class NearestNeighbors:
    """The search for the nearest users, in one thread or several."""

    def __cinit__(self):
        self.scan = Scan()
        self.thread_scans = []

    cdef int find(self, Index index, const KnnQuery *query, thread_pool) except -1:
        """Find the k users nearest to the query, without the query's own user.

        Leaves them, unordered, in the candidates of `scan`, with |v|^2 - 2 v.q as keys: the squared distance less the
        constant |q|^2. Their number, `scan.found`, is k, or that of all others if there are fewer. Threads of the pool
        share the work (None: this thread does it all).
        """
        if thread_pool is None or index.shard_count <= 1:
            with nogil:
                return self.find_serial(index, query)
        while len(self.thread_scans) < thread_pool.size:
            self.thread_scans.append(Scan())
        self.query, self.next_shard = query[0], 0
        scans = self.thread_scans[: index.shard_count - 1]
        fork_join(thread_pool, [partial(self.search, index, scan) for scan in (self.scan, *scans)])
        for scan in scans:
            self.scan.merge(scan, query)

    cdef int find_serial(self, Index index, const KnnQuery *query) except -1 nogil:
        """Do the same in this thread only."""
        self.query, self.next_shard = query[0], 0
        return self.search_shards(index, self.scan)

    cdef int search_shards(self, Index index, Scan scan) except -1 nogil:
        """Search shards until all are taken."""
        cdef Py_ssize_t number = next_index(&self.next_shard)
        scan.widen(index, self.query.k)
        # Leaving out one, at least k others have a norm below the limit, so the k nearest have a key below it.
        scan.limit = index.limit_of(self.query.k + 1)
        while number < index.shard_count:
            scan.search_shard(<Shard> index.table[number], number * index.shard_size, &self.query)
            number = next_index(&self.next_shard)

    def search(self, Index index, Scan scan):
        """Do the same from any thread."""
        with nogil:
            self.search_shards(index, scan)

    cdef Py_ssize_t residue(self) except -1:
        """Count the bytes that are not zero; between searches there are none."""
        cdef Py_ssize_t count = self.scan.residue()
        cdef Scan scan
        for scan in self.thread_scans:
            count += scan.residue()
        return count
