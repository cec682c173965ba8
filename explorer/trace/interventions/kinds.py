"""What a run changes in its model: parts silenced or patched, cells of attention, scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MOST = 2**31 - 1
MOST_SOURCE = 8192  # tokens of a text that activations are taken from
Index = Annotated[int, Meta(ge=0, le=MOST)]
Span = tuple[Index, Index]  # first and last, both included
Effect = Literal["cut", "allow", "restore"]


class Silence(msgspec.Struct, frozen=True, kw_only=True, tag="silence"):
    """A part whose output is zero; of a whole layer, everything that it writes.

    A head may give its mean instead: the mean of what it gives at each token of the prompt in the
    model's own run, without any intervention.
    """

    layer: Index
    part: Literal["head", "mlp", "layer"] = "head"
    head: Index = 0
    by: Literal["zero", "mean"] = "zero"

    def __str__(self) -> str:
        named = {"head": f".{self.head}", "mlp": ".mlp", "layer": ""}
        mean = "=mean" if self.by == "mean" else ""
        return f"silence {self.layer}{named[self.part]}{mean}"


class Cells(msgspec.Struct, frozen=True, kw_only=True, tag="cells"):
    """Cells of attention that are cut (a score of -inf), allowed or restored; None = all.

    Restored cells are as the model has them, whatever an earlier intervention did to them.
    """

    layer: Index | None = None
    head: Index | None = None
    queries: Span | None = None
    keys: Span | None = None
    back: Span | None = None  # how far the key lies before the query
    allowed: bool = False
    restored: bool = False  # counts before `allowed`

    @property
    def effect(self) -> Effect:
        """What is done to the cells."""
        return "restore" if self.restored else "allow" if self.allowed else "cut"

    def __str__(self) -> str:
        keys = _span(self.keys)
        if self.back is not None:
            first, last = self.back
            more = {first: "", MOST: "+"}.get(last, f"-{last}")
            keys = f"q-{first}{more}"
        return f"{self.effect} {_place(self.layer, self.head)}:{_span(self.queries)}<-{keys}"

    @property
    def sees_later(self) -> bool:
        """True if it may let a token attend to a later one."""
        if self.effect != "allow" or self.back is not None:
            return False
        return self.queries is None or self.keys is None or self.keys[1] > self.queries[0]


class Scale(msgspec.Struct, frozen=True, kw_only=True, tag="scale"):
    """Scores of attention times `factor`: above 1 sharper, below 1 flatter."""

    layer: Index | None = None
    head: Index | None = None
    factor: float = 1.0  # 0 to 1,000,000

    def __str__(self) -> str:
        factor = repr(float(self.factor)).removesuffix(".0")
        return f"scale {_place(self.layer, self.head)}:{factor}"


class OtherRun(msgspec.Struct, frozen=True, kw_only=True):
    """Another run of the same model, whose activations are taken: its tokens, read in one pass."""

    tokens: Annotated[tuple[Index, ...], Meta(min_length=1, max_length=MOST_SOURCE)]
    causal_mask: bool = True
    interventions: Annotated[tuple[Silence | Cells | Scale, ...], Meta(max_length=4096)] = ()

    @classmethod
    def of(
        cls, tokens: tuple[int, ...], causal_mask: bool, changes: Iterable[Intervention]
    ) -> OtherRun:
        """ValueError in words for interventions that the tokens alone do not decide."""
        plain: list[Silence | Cells | Scale] = []
        for one in changes:
            if isinstance(one, Patch):
                raise ValueError("This run is patched itself. Patch from a run without patches.")
            if isinstance(one, Silence) and one.by == "mean":
                raise ValueError(
                    "This run sets a head to its mean over the prompt. Patch from a run without."
                )
            plain.append(one)
        return cls(tokens=tokens, causal_mask=causal_mask, interventions=tuple(plain))


class Patch(msgspec.Struct, frozen=True, kw_only=True, tag="patch"):
    """A part whose output is, at some positions, what it was in another run.

    A head's output is taken before W_O, an MLP's where it is written to the residual stream, and
    the stream's after the layer.
    """

    layer: Index
    part: Literal["head", "mlp", "stream"] = "head"
    head: Index = 0
    positions: Span | None = None  # that are written; None = all that the source has
    first: Index = 0  # position of the source that the first of them is taken from
    source: OtherRun

    def __str__(self) -> str:
        named = {"head": f".{self.head}", "mlp": ".mlp", "stream": ""}[self.part]
        taken = None if self.positions is None else self.taken
        ids = ",".join(map(str, self.source.tokens))
        words = f"patch {self.layer}{named}:{_span(self.positions)}<-{_span(taken)} of {ids}"
        if not self.source.causal_mask:
            words += " without mask"
        if self.source.interventions:
            words += f" with {'; '.join(written(self.source.interventions))}"
        return words

    @property
    def into(self) -> Span:
        """First and last position that is written."""
        return (0, len(self.source.tokens) - 1) if self.positions is None else self.positions

    @property
    def taken(self) -> Span:
        """First and last position of the source."""
        first, last = self.into
        return self.first, self.first + last - first


Intervention = Silence | Cells | Scale | Patch
Interventions = Annotated[tuple[Intervention, ...], Meta(max_length=4096)]


def written(interventions: Iterable[Intervention]) -> list[str]:
    """Each as its line of text."""
    return [str(one) for one in interventions]


def capability(one: Intervention) -> str:
    """The name of what must have been found to work on a model for this."""
    if isinstance(one, Cells):
        return "cut_cells"
    if isinstance(one, Scale):
        return "scale_scores"
    if isinstance(one, Patch):
        return {"head": "patch_heads", "mlp": "patch_mlp", "stream": "patch_stream"}[one.part]
    if one.by == "mean":  # taken in one run and put into another, as patches are
        return "patch_heads"
    return {"head": "silence_heads", "mlp": "silence_mlp", "layer": "silence_layers"}[one.part]


def brief(one: Intervention) -> str:
    """Its line of text without the tokens of another run, for a sentence."""
    return str(one).partition(" of ")[0]


def changes_attention(one: Intervention, layer: int) -> bool:
    """True if it changes what attention does in this layer, in one head or in all."""
    if isinstance(one, Silence | Patch):
        return one.part == "head" and one.layer == layer
    return one.layer is None or one.layer == layer


def _place(layer: int | None, head: int | None) -> str:
    return ".".join("*" if one is None else str(one) for one in (layer, head))


def _span(span: Span | None) -> str:
    if span is None:
        return "*"
    return str(span[0]) if span[0] == span[1] else f"{span[0]}-{span[1]}"
