"""The sparse Merkle tree of users: its root is a function of who is there and of their data, and of nothing else.

A place has 48 bits, which lead from the root to a leaf. All hashes are BLAKE2s; an empty subtree is 32 zeros.

    entry   hash of the id's hash and of the value
    value   hash of the nonce and of the data's hash; the nonce is a hash of the salt and of the data's hash
    leaf    the entry of the user at that place; of several users, the hash of their sorted entries
    node    hash of the two nodes below

In memory, only nodes with two children are kept, and the hash of a user's entry. Paths with one child are hashed when
they are needed: 28 levels of them hide where the neighbors of a place are.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from unbasket.core.memory.buffers cimport give_back, grown, nonzero_bytes

cdef extern from "codec/blake2s.h" nogil:
    enum:
        LANES
    void blake2s_of(uint8_t *result, const uint8_t *data, size_t length, const char *person)
    void blake2s_pair(uint8_t *result, const uint8_t *left, const uint8_t *right, const char *person)
    void blake2s_climb(
        uint8_t (*hashes)[32], const uint64_t *places, const uint8_t *upto, int start, const char *person
    )

cdef enum:
    DEPTH = 48
    SIZE = 32

cdef const char *NONCE = "ub-nonce"
cdef const char *VALUE = "ub-value"
cdef const char *ENTRY = "ub-entry"
cdef const char *TWINS = "ub-twins"
cdef const char *NODE = "ub-node\0"
cdef uint8_t[SIZE] EMPTY
memset(EMPTY, 0, SIZE)

cdef uint64_t IS_PLACED = <uint64_t> 1 << DEPTH  # set in the place of a user who is in the tree
cdef uint64_t IS_SHARED = <uint64_t> 1 << (DEPTH + 1)  # set if `shared` has the place
cdef uint64_t IS_STAGED = <uint64_t> 1 << (DEPTH + 2)  # set in the place of a user who waits for `link`
cdef uint64_t PLACE = IS_PLACED - 1


cdef inline bint is_zero(const uint8_t *hash) noexcept nogil:
    return memcmp(hash, EMPTY, SIZE) == 0


cdef inline int bit_of(uint64_t place, int depth) noexcept nogil:
    return <int> (place >> (DEPTH - 1 - depth) & 1)


cdef inline int first_difference(uint64_t one, uint64_t other) noexcept nogil:
    """Return the depth at which two different places part."""
    cdef uint64_t differs = one ^ other
    cdef int depth = DEPTH - 1
    while differs >> 1:
        differs >>= 1
        depth -= 1
    return depth


cdef inline void join(uint8_t *result, const uint8_t *left, const uint8_t *right) noexcept nogil:
    """Compute the hash of a node, which is empty if both children are."""
    if is_zero(left) and is_zero(right):
        memset(result, 0, SIZE)
    else:
        blake2s_pair(result, left, right, NODE)


cdef inline void climb(uint8_t *hash, uint64_t place, int start, int stop) noexcept nogil:
    """Hash a subtree at depth `start` with empty siblings up to depth `stop`."""
    cdef int depth = start - 1
    if is_zero(hash):
        return
    while depth >= stop:
        if bit_of(place, depth):
            blake2s_pair(hash, EMPTY, hash, NODE)
        else:
            blake2s_pair(hash, hash, EMPTY, NODE)
        depth -= 1


cdef bytes as_bytes(const uint8_t *hash):
    return PyBytes_FromStringAndSize(<const char *> hash, SIZE)


cdef uint64_t place_of(const uint8_t *id_hash) noexcept nogil:
    """Return the first 48 bits of the hash of an id."""
    cdef uint64_t place = 0
    cdef int i
    for i in range(DEPTH // 8):
        place = place << 8 | id_hash[i]
    return place


cdef struct Edge:  # a user below a node that is being hashed
    int32_t code
    uint8_t upto  # the depth below the node


@cython.final
cdef class UserTree:
    """A tree of users by code. A child is the code of a user or, negative, the complement of the number of a node."""

    cdef uint8_t[SIZE] salt
    cdef uint8_t *entries  # by code; zero without a user
    cdef uint64_t *places  # by code, with IS_PLACED and perhaps IS_SHARED, or with IS_STAGED; 0 without a user
    cdef Py_ssize_t codes  # capacity of both
    cdef int32_t *children  # two per node
    cdef uint8_t *depths  # of the nodes
    cdef uint8_t *hashes  # of the nodes; zero if something below has changed: then so are those of all nodes above
    cdef Py_ssize_t nodes  # capacity of the three
    cdef Py_ssize_t used  # nodes that were ever used
    cdef int32_t unused  # number plus 1 of the first unused node, which has that of the next one as its child
    cdef int32_t top  # the child that stands for the root
    cdef readonly Py_ssize_t count  # users
    cdef dict shared  # lists of codes of users with the same place
    cdef Edge *edges  # work space: the users below nodes that are being hashed
    cdef uint8_t *climbed  # their hashes
    cdef Py_ssize_t room  # capacity of both
    cdef Py_ssize_t waiting, next_edge  # edges in use, the next one to be consumed

    def __cinit__(self, bytes salt):
        assert len(salt) == SIZE, "a salt has 32 bytes"
        memcpy(self.salt, <const char *> salt, SIZE)
        self.shared = {}

    def __dealloc__(self):
        give_back(self.entries, self.codes * SIZE)
        give_back(self.places, self.codes * sizeof(uint64_t))
        give_back(self.children, self.nodes * 2 * sizeof(int32_t))
        give_back(self.depths, self.nodes)
        give_back(self.hashes, self.nodes * SIZE)
        give_back(self.edges, self.room * sizeof(Edge))
        give_back(self.climbed, self.room * SIZE)

    # Users ------------------------------------------------------------------------------------------------------

    cdef void _entry(self, const uint8_t *id_hash, const uint8_t *data, uint8_t *nonce, uint8_t *entry) noexcept nogil:
        blake2s_pair(nonce, self.salt, data, NONCE)
        blake2s_pair(entry, nonce, data, VALUE)
        blake2s_pair(entry, id_hash, entry, ENTRY)

    def nonce(self, const uint8_t[::1] data):
        """Return the nonce of a user with this hash of their data."""
        cdef uint8_t[SIZE] nonce
        blake2s_pair(nonce, self.salt, &data[0], NONCE)
        return as_bytes(nonce)

    def value(self, const uint8_t[::1] data):
        """Return the value of a user with this hash of their data, which hides it."""
        cdef uint8_t[SIZE] nonce
        blake2s_pair(nonce, self.salt, &data[0], NONCE)
        blake2s_pair(nonce, nonce, &data[0], VALUE)
        return as_bytes(nonce)

    def put_users(self, list codes, const uint8_t[:, ::1] id_hashes, const uint8_t[:, ::1] data):
        """Put users into the tree, or replace their data, given by hashes; a code keeps its id while it is there."""
        cdef uint8_t[SIZE] nonce
        cdef Py_ssize_t i, code
        cdef uint64_t place
        for i in range(len(codes)):
            code, place = codes[i], place_of(&id_hashes[i, 0])
            self._make_room(code)
            if self.places[code] & IS_PLACED:
                self._touch(place)
            else:
                self._insert(code, place)
            self._entry(&id_hashes[i, 0], &data[i, 0], nonce, self.entries + code * SIZE)

    def stage_users(self, list codes, const uint8_t[:, ::1] id_hashes, const uint8_t[:, ::1] data):
        """Note users who are not in the tree, for `link`."""
        cdef uint8_t[SIZE] nonce
        cdef Py_ssize_t i, code
        for i in range(len(codes)):
            code = codes[i]
            self._make_room(code)
            self._entry(&id_hashes[i, 0], &data[i, 0], nonce, self.entries + code * SIZE)
            self.places[code] = place_of(&id_hashes[i, 0]) | IS_STAGED

    def staged(self):
        """Return the users for `link`, by the first 16 bits of their places: neighbors' nodes are in the cache then."""
        if self.codes == 0:
            return np.empty(0, np.int64)
        places = np.asarray(<uint64_t[:self.codes]> self.places)
        codes = np.flatnonzero(places & IS_STAGED)
        return codes[np.argsort((places[codes] >> (DEPTH - 16)).astype(np.uint16), kind="stable")]

    def link(self, const int64_t[::1] codes):
        """Put users into the tree that were noted for it, and not removed since."""
        cdef Py_ssize_t i
        for i in range(len(codes)):
            if self.places[codes[i]] & IS_STAGED:
                self._make_room(codes[i])
                self._insert(codes[i], self.places[codes[i]] & PLACE)

    def remove(self, Py_ssize_t code):
        """Remove a user, if they are in the tree or noted for it."""
        if code < self.codes and self.places[code] & IS_PLACED:
            self._remove(code)
        elif code < self.codes:
            self.places[code] = 0
            memset(self.entries + code * SIZE, 0, SIZE)

    def holds(self, Py_ssize_t code, const uint8_t[::1] id_hash, const uint8_t[::1] data):
        """Return whether a user with these hashes is in the tree."""
        cdef uint8_t[SIZE] nonce, entry
        self._entry(&id_hash[0], &data[0], nonce, entry)
        return (
            code < self.codes
            and self.places[code] & ~IS_SHARED == place_of(&id_hash[0]) | IS_PLACED
            and memcmp(entry, self.entries + code * SIZE, SIZE) == 0
        )

    def is_free(self, Py_ssize_t code):
        """Return whether nothing is held under a code."""
        return code >= self.codes or (self.places[code] == 0 and is_zero(self.entries + code * SIZE))

    def __contains__(self, Py_ssize_t code):
        return code < self.codes and self.places[code] != 0

    # Structure --------------------------------------------------------------------------------------------------

    cdef int _make_room(self, Py_ssize_t code) except -1:
        cdef Py_ssize_t codes, nodes
        if code >= self.codes:
            codes = code + 1 + code // 8
            self.entries = <uint8_t *> grown(self.entries, self.codes, codes, SIZE)
            self.places = <uint64_t *> grown(self.places, self.codes, codes, sizeof(uint64_t))
            self.codes = codes
        if self.unused == 0 and self.used == self.nodes:
            nodes = self.nodes + self.nodes // 8 + 8
            self.children = <int32_t *> grown(self.children, self.nodes * 2, nodes * 2, sizeof(int32_t))
            self.depths = <uint8_t *> grown(self.depths, self.nodes, nodes, 1)
            self.hashes = <uint8_t *> grown(self.hashes, self.nodes, nodes, SIZE)
            self.nodes = nodes

    cdef int32_t _new_node(self) noexcept:
        cdef int32_t node
        if self.unused:
            node = self.unused - 1
            self.unused = self.children[2 * node]
        else:
            node = <int32_t> self.used
            self.used += 1
        return node

    cdef int32_t _first_user(self, int32_t child) noexcept nogil:
        while child < 0:
            child = self.children[2 * ~child]
        return child

    cdef uint64_t _place_below(self, int32_t child) noexcept nogil:
        """Return the place of a user below a child."""
        return self.places[self._first_user(child)] & PLACE

    cdef int32_t _nearest(self, uint64_t place) noexcept nogil:
        """Return the user at the end of the path to a place, who is there if any user is."""
        cdef int32_t child = self.top
        while child < 0:
            child = self.children[2 * ~child + bit_of(place, self.depths[~child])]
        return child

    cdef void _touch(self, uint64_t place) noexcept nogil:
        """Zero the hashes on the path to a place that is in the tree."""
        cdef int32_t child = self.top
        while child < 0:
            memset(self.hashes + ~child * SIZE, 0, SIZE)
            child = self.children[2 * ~child + bit_of(place, self.depths[~child])]

    cdef int _insert(self, Py_ssize_t code, uint64_t place) except -1:
        cdef int32_t *link = &self.top
        cdef int32_t node, nearest
        cdef int depth, side
        self.count += 1
        self.places[code] = place | IS_PLACED
        if self.count == 1:
            self.top = <int32_t> code
            return 0
        nearest = self._nearest(place)
        if self.places[nearest] & PLACE == place:
            self.shared.setdefault(place, [nearest]).append(code)
            self.places[nearest] |= IS_SHARED
            self.places[code] |= IS_SHARED
            self._touch(place)
            return 0
        depth = first_difference(self.places[nearest] & PLACE, place)
        while link[0] < 0 and self.depths[~link[0]] < depth:
            memset(self.hashes + ~link[0] * SIZE, 0, SIZE)
            link = &self.children[2 * ~link[0] + bit_of(place, self.depths[~link[0]])]
        node, side = self._new_node(), bit_of(place, depth)
        self.depths[node] = <uint8_t> depth
        self.children[2 * node + side] = <int32_t> code
        self.children[2 * node + 1 - side] = link[0]
        link[0] = ~node

    cdef int _remove(self, Py_ssize_t code) except -1:
        cdef uint64_t place = self.places[code] & PLACE
        cdef bint is_shared = self.places[code] & IS_SHARED != 0
        self._touch(place)
        self.count -= 1
        self.places[code] = 0
        memset(self.entries + code * SIZE, 0, SIZE)
        if is_shared:
            self._leave(code, place)
        elif self.count == 0:
            self.top = 0
        else:
            self._unlink(place)

    cdef int _unlink(self, uint64_t place) noexcept:
        """Replace the last node on the path to a place by its other child."""
        cdef int32_t *link = &self.top
        cdef int32_t *above = NULL
        cdef int32_t node
        while link[0] < 0:
            above = link
            link = &self.children[2 * ~link[0] + bit_of(place, self.depths[~link[0]])]
        node = ~above[0]
        above[0] = self.children[2 * node + 1 - bit_of(place, self.depths[node])]
        self.depths[node] = 0
        self.children[2 * node] = self.unused
        self.children[2 * node + 1] = 0
        self.unused = node + 1

    cdef int _leave(self, Py_ssize_t code, uint64_t place) except -1:
        """Remove a user from those with the same place; the first of the others stands for them in the tree."""
        cdef int32_t *link = &self.top
        twins = self.shared[place]
        twins.remove(code)
        while link[0] < 0:
            link = &self.children[2 * ~link[0] + bit_of(place, self.depths[~link[0]])]
        link[0] = twins[0]
        if len(twins) == 1:
            self.places[twins[0]] = place | IS_PLACED
            del self.shared[place]

    # Hashes -----------------------------------------------------------------------------------------------------

    cdef int _leaf(self, int32_t code, uint8_t *hash) except -1:
        """Compute the leaf at the place of a user."""
        memcpy(hash, self.entries + code * SIZE, SIZE)
        if self.places[code] & IS_SHARED:
            self._leaf_of([self.entry(twin) for twin in self.twins(self.places[code])], hash)

    cdef int _leaf_of(self, list entries, uint8_t *hash) except -1:
        """Compute the leaf of these entries."""
        cdef bytes joined = b"".join(sorted(entries))
        memset(hash, 0, SIZE)
        if len(entries) == 1:
            memcpy(hash, <const char *> joined, SIZE)
        elif entries:
            blake2s_of(hash, <const uint8_t *> <const char *> joined, len(joined), TWINS)

    def twins(self, place):
        """Return the users at a place that more than one has."""
        return self.shared.get(place & PLACE, [])

    cdef int _gather(self, int32_t child) except -1:
        """Collect the users right below the nodes without a hash, in the order in which `_fill` consumes them."""
        cdef int32_t node = ~child, below
        cdef int side
        if child >= 0 or not is_zero(self.hashes + node * SIZE):
            return 0
        for side in range(2):
            below = self.children[2 * node + side]
            if below < 0:
                self._gather(below)
                continue
            if self.waiting == self.room:
                self.edges = <Edge *> grown(self.edges, self.room, 2 * self.room + LANES, sizeof(Edge))
                self.climbed = <uint8_t *> grown(self.climbed, self.room, 2 * self.room + LANES, SIZE)
                self.room = 2 * self.room + LANES
            self.edges[self.waiting] = Edge(below, self.depths[node] + 1)
            self._leaf(below, self.climbed + self.waiting * SIZE)
            self.waiting += 1

    cdef void _climb_all(self) noexcept nogil:
        """Hash the collected users up to their nodes, several at a time."""
        cdef uint64_t[LANES] places
        cdef uint8_t[LANES] upto
        cdef Py_ssize_t first = 0
        cdef int lane
        while first < self.waiting:
            for lane in range(LANES):
                upto[lane] = DEPTH
                places[lane] = 0
                if first + lane < self.waiting:
                    upto[lane] = self.edges[first + lane].upto
                    places[lane] = self.places[self.edges[first + lane].code] & PLACE
            blake2s_climb(<uint8_t (*)[32]> (self.climbed + first * SIZE), places, upto, DEPTH, NODE)
            first += LANES

    cdef void _fill(self, int32_t child) noexcept nogil:
        """Compute the missing hash of a node, and of those below."""
        cdef int32_t node = ~child, below
        cdef uint8_t[2][SIZE] hashes
        cdef int side
        if not is_zero(self.hashes + node * SIZE):
            return
        for side in range(2):
            below = self.children[2 * node + side]
            if below < 0:
                self._fill(below)
                memcpy(hashes[side], self.hashes + ~below * SIZE, SIZE)
                climb(hashes[side], self._place_below(below), self.depths[~below], self.depths[node] + 1)
            else:
                memcpy(hashes[side], self.climbed + self.next_edge * SIZE, SIZE)
                self.next_edge += 1
        blake2s_pair(self.hashes + node * SIZE, hashes[0], hashes[1], NODE)

    cdef int _hash(self, int32_t child) except -1:
        """Compute the missing hashes below a child."""
        if child >= 0:
            return 0
        self.waiting = self.next_edge = 0
        self._gather(child)
        with nogil:
            self._climb_all()
            self._fill(child)
        memset(self.climbed, 0, (self.waiting + LANES - 1) // LANES * LANES * SIZE)
        memset(self.edges, 0, self.waiting * sizeof(Edge))
        if self.room > 4096:
            give_back(self.edges, self.room * sizeof(Edge))
            give_back(self.climbed, self.room * SIZE)
            self.edges, self.climbed, self.room = NULL, NULL, 0

    cdef int32_t _region(self, Py_ssize_t number, int bits) noexcept nogil:
        """Return the child on the path of a prefix of a place, at its end or below."""
        cdef uint64_t prefix = <uint64_t> number << (DEPTH - bits)
        cdef int32_t child = self.top
        while child < 0 and self.depths[~child] < bits:
            child = self.children[2 * ~child + bit_of(prefix, self.depths[~child])]
        return child

    def hash_region(self, Py_ssize_t number, int bits):
        """Compute the missing hashes of the nodes whose places start with these bits."""
        if self.count:
            self._hash(self._region(number, bits))

    cdef int _hash_at(self, int32_t child, int depth, uint8_t *hash) except -1:
        """Compute the hash of a child, whose missing hashes have been computed, at a depth above it."""
        if child >= 0:
            self._leaf(child, hash)
            climb(hash, self.places[child] & PLACE, DEPTH, depth)
        else:
            memcpy(hash, self.hashes + ~child * SIZE, SIZE)
            climb(hash, self._place_below(child), self.depths[~child], depth)

    def root(self):
        """Return the root; without users, zeros."""
        cdef uint8_t[SIZE] hash
        memset(hash, 0, SIZE)
        if self.count:
            self._hash(self.top)
            self._hash_at(self.top, 0, hash)
        return as_bytes(hash)

    def root_without(self, codes):
        """Return the root of the tree without these users."""
        cdef uint8_t[SIZE] hash
        memset(hash, 0, SIZE)
        left_out = {code: self.places[<Py_ssize_t> code] & PLACE for code in codes if code in self}
        if self.count:
            self._hash(self.top)
            self._hash_without(self.top, 0, left_out, hash)
        return as_bytes(hash)

    cdef int _hash_without(self, int32_t child, int depth, dict left_out, uint8_t *hash) except -1:
        cdef uint8_t[2][SIZE] hashes
        cdef int32_t node = ~child
        cdef int side, own = DEPTH if child >= 0 else self.depths[node]
        cdef uint64_t place = self._place_below(child)
        if not any((<uint64_t> other ^ place) >> (DEPTH - own) == 0 for other in left_out.values()):
            return self._hash_at(child, depth, hash)
        if child >= 0:
            left = [self.entry(code) for code in self.twins(place) or [child] if code not in left_out]
            self._leaf_of(left, hash)
        else:
            for side in range(2):
                self._hash_without(self.children[2 * node + side], own + 1, left_out, hashes[side])
            join(hash, hashes[0], hashes[1])
        climb(hash, place, own, depth)

    # Proofs and checks ------------------------------------------------------------------------------------------

    def path(self, const uint8_t[::1] id_hash):
        """Return the siblings on the path of an id, from the root on, and the users at its place."""
        cdef uint8_t[SIZE] hash
        cdef uint64_t place = place_of(&id_hash[0]), other
        cdef int32_t child = self.top
        cdef int depth = 0, own
        siblings = [None] * DEPTH
        if self.count == 0:
            return siblings, []
        self._hash(child)
        while True:
            own = DEPTH if child >= 0 else self.depths[~child]
            other = self._place_below(child)
            if (other ^ place) >> (DEPTH - own):
                depth = first_difference(other, place)
                self._hash_at(child, depth + 1, hash)
                siblings[depth] = as_bytes(hash)
                return siblings, []
            if child >= 0:
                return siblings, self.twins(place) or [child]
            depth = own
            self._hash_at(self.children[2 * ~child + 1 - bit_of(place, depth)], depth + 1, hash)
            siblings[depth] = as_bytes(hash)
            child = self.children[2 * ~child + bit_of(place, depth)]

    def entry(self, Py_ssize_t code):
        """Return the entry of a user."""
        return as_bytes(self.entries + code * SIZE)

    cdef bint _is_right(self, int32_t child, int upto) except -1:
        """Return whether each node below a child, at less than this depth, has the hash of its children."""
        cdef uint8_t[2][SIZE] hashes
        cdef uint8_t[SIZE] hash
        cdef int32_t node = ~child, below
        cdef int side
        if child >= 0 or self.depths[node] >= upto or is_zero(self.hashes + node * SIZE):
            return True
        for side in range(2):
            below = self.children[2 * node + side]
            if bit_of(self._place_below(below), self.depths[node]) != side or not self._is_right(below, upto):
                return False
            self._hash_at(below, self.depths[node] + 1, hashes[side])
        blake2s_pair(hash, hashes[0], hashes[1], NODE)
        return memcmp(hash, self.hashes + node * SIZE, SIZE) == 0

    def check_region(self, Py_ssize_t number, int bits):
        """Return whether the hashes below this start of a place are right."""
        return self.count == 0 or self._is_right(self._region(number, bits), DEPTH)

    def check_top(self, int bits):
        """Return whether the hashes above the regions are right, and all users are counted."""
        return self.count == self._placed() and (self.count == 0 or self._is_right(self.top, bits))

    def residue(self):
        """Return the number of bytes, not zero, of hashes and places."""
        return (
            nonzero_bytes(self.entries, self.codes * SIZE)
            + nonzero_bytes(self.places, self.codes * sizeof(uint64_t))
            + nonzero_bytes(self.hashes, self.nodes * SIZE)
            + nonzero_bytes(self.climbed, self.room * SIZE)
        )

    cdef Py_ssize_t _placed(self) noexcept nogil:
        cdef Py_ssize_t code, users = 0
        for code in range(self.codes):
            users += self.places[code] != 0
        return users
