"""Who is nearest to a query (paper, section 2.2).

A query adds up its dot products with all users that share an item with it, then goes once over all users, in order,
and keeps those whose distance is below a limit that at least k users stay below: those with small norms (in Euclidean
space a small vector with no item in common can be nearer than a large one with many). Among the few that are kept, the
k nearest are selected. It does so shard by shard, with what was found so far as the limit.

Other threads may help: they take shards in turns, and what they found is put together. All of it is exact, in integers,
so neither shards nor threads change an answer.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from functools import partial

from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.index.index cimport Index
from unbasket.core.index.shard cimport BLOCK_ROWS, Shard, Posting
from unbasket.core.util.topn cimport Candidate, smallest_first
from unbasket.core.search.parallel cimport together

cdef extern from "search/atomic_counter.h" nogil:
    long fetch_increment(long *turn)


cdef extern from "search/prefetch.h" nogil:
    void prefetch(const void *memory, size_t bytes)

cdef extern from "search/simd_threshold.h" nogil:
    unsigned rows_below(int64_t limit, const int64_t *norm, const int64_t *dot)
    int lowest_one(unsigned bits)


@cython.final
cdef class Scan:
    """Work space of one search at a time: dot products by row of a shard, and candidates; all zero between searches."""

    def __dealloc__(self):
        give_back(self.dot, self.row_room * sizeof(int64_t))
        give_back(self.candidates, self.room * sizeof(Candidate))

    cdef int widen(self, Index index, Py_ssize_t k) except -1 nogil:
        """Make room for the rows of a shard, and for as many candidates as can come together."""
        cdef Py_ssize_t rows = min(index.shard_size, index.slot_end) + BLOCK_ROWS, most = min(k, index.slot_end)
        cdef Py_ssize_t room = most + max(most, rows)  # what was found, and a shard or what another has found
        if rows > self.row_room:
            rows += rows // 4
            give_back(self.dot, self.row_room * sizeof(int64_t))
            self.dot, self.row_room = NULL, 0
            self.dot = <int64_t *> allocated(rows, sizeof(int64_t))
            self.row_room = rows
        if room > self.room:
            room += room // 4
            give_back(self.candidates, self.room * sizeof(Candidate))
            self.candidates, self.room = NULL, 0
            self.candidates = <Candidate *> allocated(room, sizeof(Candidate))
            self.room = room
        return 0

    cdef int search_shard(self, Shard shard, Py_ssize_t first_slot, const KnnQuery *query) except -1 nogil:
        """Take in the users of a shard."""
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
                row = first + lowest_one(below)
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
        """The dot products of the query with all users of a shard that share an item with it."""
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
        return 0

    cdef int keep_nearest(self, const KnnQuery *query) except -1 nogil:
        """Keep the k nearest of the candidates; none that is farther than they are is wanted from now on."""
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
        self.limit = farthest + 1  # one who is as far may come first, by id
        return 0

    cdef int take(self, Scan other, const KnnQuery *query) except -1 nogil:
        """Take over what another has found in other shards."""
        cdef Py_ssize_t i
        assert self.found + other.found <= self.room, "no room"
        for i in range(other.found):
            self.candidates[self.found + i] = other.candidates[i]
        self.found += other.found
        other.forget()
        return self.keep_nearest(query)

    cdef int forget(self) except -1 nogil:
        """Wipe the candidates."""
        cdef Py_ssize_t i
        for i in range(self.found):
            self.candidates[i] = Candidate(0, 0, 0)
        self.found = 0
        return 0

    def residue(self):
        """How many places of the work space are not zero, though no search is under way."""
        cdef Py_ssize_t i, count = self.found
        for i in range(self.row_room):
            count += self.dot[i] != 0
        for i in range(self.room):
            count += self.candidates[i].key != 0 or self.candidates[i].code != 0 or self.candidates[i].slot != 0
        return count


@cython.final
cdef class NearestNeighbors:
    """The search for the nearest users: the work space of this thread, in which they are found, and of those that help."""

    def __cinit__(self):
        self.scan = Scan()
        self.helping = []

    cdef int find(self, Index index, const KnnQuery *query, helpers) except -1:
        """Find the k users nearest to the query, the query's own user left out (-1: nobody).

        Leaves them, in no order, in the candidates of `scan`, with |v|^2 - 2 v.q as keys (the squared distance less the
        constant |q|^2), and how many they are in its `found`: k, or all others if they are fewer. `helpers` are threads
        that may be asked for help (None: nobody).
        """
        if helpers is None or index.shard_count <= 1:
            with nogil:
                return self.find_alone(index, query)
        while len(self.helping) < helpers.count:
            self.helping.append(Scan())
        self.query, self.turn = query[0], 0
        scans = self.helping[: index.shard_count - 1]
        together(helpers, [partial(self.search, index, scan) for scan in (self.scan, *scans)])
        for scan in scans:
            self.scan.take(scan, query)
        return 0

    cdef int find_alone(self, Index index, const KnnQuery *query) except -1 nogil:
        """The same without help."""
        self.query, self.turn = query[0], 0
        return self.search_shards(index, self.scan)

    cdef int search_shards(self, Index index, Scan scan) except -1 nogil:
        """Search the shards whose turn it is, until there are none left."""
        cdef Py_ssize_t number = fetch_increment(&self.turn)
        scan.widen(index, self.query.k)
        # Leaving out one, at least k others have a norm below the limit, so the k nearest have a key below it.
        scan.limit = index.limit_of(self.query.k + 1)
        while number < index.shard_count:
            scan.search_shard(<Shard> index.table[number], number * index.shard_size, &self.query)
            number = fetch_increment(&self.turn)
        return 0

    def search(self, Index index, Scan scan):
        """The same, in any thread."""
        with nogil:
            self.search_shards(index, scan)

    def residue(self):
        """How many places of the work spaces are not zero, though no search is under way."""
        return sum([scan.residue() for scan in (self.scan, *self.helping)])
