"""What identifies a model, and whether two models can be the same.

A fingerprint is {config: hash, weights: [{name, size, header_sha256, blocks_sha256, changed}]}:
`blocks_sha256` is of blocks spread over a file's data, `changed` its time of change.  Files of
earlier versions lack these two.
"""

from __future__ import annotations

from typing import Any

Fingerprint = dict[str, Any]


def same_weights(one: Fingerprint, other: Fingerprint) -> bool:
    """False if anything that both tell differs.

    The time of change does not count: a copy has one of its own.  Blocks are only a part of a
    file's data, so True is no proof; the numbers of a pass are (session.proof).
    """
    if one == other:
        return True
    mine, theirs = _files(one), _files(other)
    return (
        one.get("config") == other.get("config")
        and 0 < len(mine) == len(theirs)
        and all(map(_same_file, mine, theirs))
    )


def _files(fingerprint: Fingerprint) -> list[Any]:
    found = fingerprint.get("weights")
    return list(found) if isinstance(found, list | tuple) else []


def _same_file(mine: Any, theirs: Any) -> bool:
    if not isinstance(mine, dict) or not isinstance(theirs, dict):
        return bool(mine == theirs)
    told = (mine.keys() & theirs.keys()) - {"changed"}
    return all(mine[name] == theirs[name] for name in told)
