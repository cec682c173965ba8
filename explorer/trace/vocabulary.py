"""The whole vocabulary of a model: the exact bytes of every id, in three arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from explorer.trace.step import Origin, Token


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """V entries: the bytes of id i are data[offsets[i] : offsets[i + 1]]."""

    data: np.ndarray  # (bytes,) uint8
    offsets: np.ndarray  # (V + 1,) int64
    special: np.ndarray  # (V,) uint8, 1 = a control token

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> Vocabulary:
        """From one token per id, in order."""
        sizes = np.fromiter((len(t.raw) for t in tokens), np.int64, len(tokens))
        return cls(
            np.frombuffer(b"".join(t.raw for t in tokens), np.uint8),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.fromiter((t.special for t in tokens), np.uint8, len(tokens)),
        )

    @classmethod
    def unpacked(cls, arrays: Mapping[str, np.ndarray]) -> Vocabulary:
        """From arrays of a frame; ValueError if they do not fit each other."""
        try:
            found = cls(arrays["data"], arrays["offsets"], arrays["special"])
        except KeyError as missing:
            raise ValueError(f"the vocabulary lacks an array: {missing}") from missing
        data, offsets, special = found.data, found.offsets, found.special
        if [a.dtype.str for a in (data, offsets, special)] != ["|u1", "<i8", "|u1"]:
            raise ValueError("the vocabulary holds other types than it should")
        fits = data.ndim == offsets.ndim == special.ndim == 1 and len(offsets) == len(special) + 1
        if not fits or offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
            raise ValueError("the vocabulary's arrays do not fit each other")
        return found

    def packed(self) -> dict[str, np.ndarray]:
        """The arrays by name, for a frame."""
        return {"data": self.data, "offsets": self.offsets, "special": self.special}

    def __len__(self) -> int:
        return len(self.special)

    def raw(self, token_id: int) -> bytes:
        """The bytes of one id.  IndexError if there is no such id."""
        if not 0 <= token_id < len(self):
            raise IndexError(token_id)
        return self.data[self.offsets[token_id] : self.offsets[token_id + 1]].tobytes()

    def token(self, token_id: int, origin: Origin = "generated") -> Token:
        """One id as a token.  IndexError if there is no such id."""
        raw = self.raw(token_id)
        return Token(token_id, raw, origin, bool(self.special[token_id]))

    def by_bytes(self) -> np.ndarray:
        """(V,) ids in order of their bytes, equal ones by id."""
        whole, ends = self.data.tobytes(), self.offsets.tolist()
        raw = [whole[a:b] for a, b in pairwise(ends)]
        return np.array(sorted(range(len(raw)), key=raw.__getitem__), np.int64)

    def spelled(self, raw: bytes) -> tuple[int, ...]:
        """Every id with exactly these bytes, in order."""
        return tuple(self._with(np.flatnonzero(np.diff(self.offsets) == len(raw)), raw).tolist())

    def beginning(self, raw: bytes, most: int) -> tuple[int, ...]:
        """At most so many ids whose bytes begin with these, the shortest first."""
        sizes = np.diff(self.offsets)
        found = self._with(np.flatnonzero(sizes >= len(raw)), raw)
        return tuple(found[np.argsort(sizes[found], kind="stable")[:most]].tolist())

    def _with(self, ids: np.ndarray, raw: bytes) -> np.ndarray:
        """Those of the ids that begin with these bytes; none may be shorter."""
        for place, byte in enumerate(raw):
            ids = ids[self.data[self.offsets[ids] + place] == byte]
        return ids
