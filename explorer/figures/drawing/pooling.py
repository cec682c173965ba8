"""Making an array smaller without losing its largest entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def maxima(array: np.ndarray, starts: np.ndarray, axis: int) -> np.ndarray:
    """Maxima along an axis, from each start up to the next, the last up to the end.

    `starts` must rise.  Maxima of 2, 4, … neighbours come first, then a few of those cover each
    span exactly: whole-array work, some ten times faster than numpy's reduceat.
    """
    ends = np.append(starts[1:], array.shape[axis])
    spans = ends - starts
    width = 1
    while width * 2 <= spans.min():
        array = _neighbours(array, width, axis)
        width *= 2
    result = array.take(starts, axis)
    for offset in range(width, int(spans.max()), width):
        covered = array.take(np.minimum(starts + offset, ends - width), axis)
        np.maximum(result, covered, out=result)
    return result


def _neighbours(array: np.ndarray, width: int, axis: int) -> np.ndarray:
    """Maximum of each entry and the one `width` further on."""
    before: list[slice] = [slice(None)] * array.ndim
    after = list(before)
    before[axis], after[axis] = slice(None, -width), slice(width, None)
    return np.asarray(np.maximum(array[tuple(before)], array[tuple(after)]))


def pool_rows(array: np.ndarray, first: int, by: int) -> np.ndarray:
    """(…, R, K) -> (…, ceil, K): maxima of rows that fall into the same multiple of `by`.

    `first` is the number of the first row.
    """
    if by == 1 or array.shape[-2] == 1:
        return array
    array = _aligned(array, first, by, -2)
    shape = (*array.shape[:-2], array.shape[-2] // by, by, array.shape[-1])
    return np.asarray(array.reshape(shape).max(axis=-2))


def pool_columns(array: np.ndarray, first: int, by: int) -> np.ndarray:
    """(…, R, K) -> (…, R, ceil): the same for columns."""
    if by == 1:
        return array
    array = _aligned(array, first, by, -1)
    result = np.maximum(array[..., ::by], array[..., 1::by])
    for offset in range(2, by):
        np.maximum(result, array[..., offset::by], out=result)
    return np.asarray(result)


def _aligned(array: np.ndarray, first: int, by: int, axis: int) -> np.ndarray:
    """Padded with zeros so that multiples of `by` begin and end with the array."""
    before = first % by
    after = -(before + array.shape[axis]) % by
    if not before and not after:
        return array
    shape = list(array.shape)
    shape[axis] += before + after
    result = np.zeros(shape, array.dtype)
    inside = slice(before, before + array.shape[axis])
    result[(..., inside, slice(None)) if axis == -2 else (..., inside)] = array
    return result


def farthest(levels: np.ndarray, pool: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Signed levels made smaller by `pool`, which keeps maxima: the one farthest from 0 stays.

    Levels are of an unsigned type, their middle is no change; 0 and 1 are no change of any kind
    and lose against every other.
    """
    highest, lowest = pool(levels), pool(_mirrored(levels))
    return np.where(highest >= lowest, highest, _mirrored(lowest))


def _mirrored(levels: np.ndarray) -> np.ndarray:
    """Levels seen from the other end, 0 and 1 as they are; adding is quicker than choosing."""
    result = np.negative(levels)  # of 1 the type's largest, two short of 1 again
    one = (levels == 1).astype(levels.dtype)
    result += one
    result += one
    return np.asarray(result)
