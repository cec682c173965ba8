"""Where the numbers of a .dxt file's JSON are, found from the definitions of its structs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import inspect

from explorer.trace.batch import BatchResult
from explorer.trace.card import ModelCard, SelfCheck
from explorer.trace.files.dxt_body import Body

Path = tuple[str | int, ...]
Field = tuple[type, str]
LATER: dict[str, type] = {"card": ModelCard, "self_check": SelfCheck, "batch": BatchResult}
_NUMBERS = (inspect.IntType, inspect.FloatType)


def defined(*kinds: type) -> set[Field]:
    """Every field of every struct in these, else in a file, that holds numbers."""
    found: set[Field] = set()
    for kind in kinds or (Body, *LATER.values()):
        _define(inspect.type_info(kind), None, found, set())
    return found


def _define(info: inspect.Type, field: Field | None, found: set[Field], seen: set[type]) -> None:
    if isinstance(info, _NUMBERS):
        assert field is not None
        found.add(field)
    elif isinstance(info, inspect.StructType) and info.cls not in seen:
        seen.add(info.cls)
        for one in info.fields:
            _define(one.type, (info.cls, one.name), found, seen)
    else:
        for inner in _inner(info):
            _define(inner, field, found, seen)


def _inner(info: inspect.Type) -> tuple[inspect.Type, ...]:
    if isinstance(info, inspect.UnionType):
        return info.types
    if isinstance(info, inspect.VarTupleType | inspect.ListType):
        return (info.item_type,)
    if isinstance(info, inspect.TupleType):
        return info.item_types
    return (info.value_type,) if isinstance(info, inspect.DictType) else ()


def numbers(body: dict[str, Any]) -> Iterator[tuple[Field, Path]]:
    """Every number in the JSON of a file, by its field and where it is."""
    yield from _numbers(inspect.type_info(Body), body, None, ())
    for name, kind in LATER.items():
        if body.get(name) is not None:
            yield from _numbers(inspect.type_info(kind), body[name], None, (name,))


def _numbers(
    info: inspect.Type, value: Any, field: Field | None, at: Path
) -> Iterator[tuple[Field, Path]]:
    if isinstance(info, inspect.UnionType):
        for one in info.types:
            yield from _numbers(one, value, field, at)
    elif isinstance(info, _NUMBERS):
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert field is not None
            yield field, at
    elif isinstance(info, inspect.StructType) and isinstance(value, dict):
        for one in info.fields:
            if one.name in value:
                yield from _numbers(
                    one.type, value[one.name], (info.cls, one.name), (*at, one.name)
                )
    elif isinstance(info, inspect.DictType) and isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(info.value_type, inner, field, (*at, key))
    elif isinstance(value, list):
        kinds = _inner(info)
        for i, inner in enumerate(value):
            if kinds:
                yield from _numbers(kinds[i % len(kinds)], inner, field, (*at, i))


def put(body: dict[str, Any], at: Path, value: Any) -> None:
    """Replace what is at this place."""
    inside: Any = body
    for key in at[:-1]:
        inside = inside[key]
    inside[at[-1]] = value
