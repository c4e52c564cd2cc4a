"""The smallest of many, exactly and in linear time; ties are decided by a second key."""

from unbasket.kernels.jit import Codes, Int64s, jit


@jit
def _precedes(key: int, code: int, other_key: int, other_code: int, order: Int64s) -> bool:
    return key < other_key or (key == other_key and order[code] < order[other_code])


@jit
def smallest_first(keys: Int64s, codes: Codes, count: int, k: int, order: Int64s) -> None:
    """Reorder the first `count` keys, and their codes, so that the k smallest come first (in no order).

    Equal keys go by `order[code]`, which is different for every code. Hoare's quickselect, median of three.
    """
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) >> 1
        for a, b in ((low, middle), (low, high), (middle, high)):
            if _precedes(keys[b], codes[b], keys[a], codes[a], order):
                keys[a], keys[b] = keys[b], keys[a]
                codes[a], codes[b] = codes[b], codes[a]
        key, code = keys[middle], codes[middle]
        i, j = low, high
        while i <= j:
            while _precedes(keys[i], codes[i], key, code, order):
                i += 1
            while _precedes(key, code, keys[j], codes[j], order):
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                codes[i], codes[j] = codes[j], codes[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return
