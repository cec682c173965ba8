"""Named modes: the kernels do what the library's do, on every shape, or the mode is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from explorer.engine import kernels, modes, one_row
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.machine.memory_bandwidth import step_bytes
from explorer.engine.one_rotary import OneRotary
from explorer.engine.one_row import OneRow
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.trace.modes import Mode
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.rounding import logit_tolerance
from explorer.trace.step import Step
from tests.engine.tiny import KINDS, tiny_model, tiny_runner

PROMPT = "9 8 7 6 5 4 3 12 13"
needs_compiler = pytest.mark.compiler


def never() -> bool:
    return False


def quiet(text: str, fraction: float | None) -> None:
    pass


def ready(kind: str = "llama", **changes: Any) -> Runner:
    runner = tiny_runner(kind, **changes)
    selftest.run(runner)
    return runner


def in_mode(mode: Mode, kind: str = "llama") -> Runner:
    runner = ready(kind)
    modes.switch(runner, mode, quiet, never, True)
    return runner


def steps_of(runner: Runner, count: int = 6, **request: Any) -> list[Step]:
    kept: list[Step] = []
    asked = RunRequest(prompt=PROMPT, **request)
    runner.advance(asked, (), count, Sampling, lambda step, _: kept.append(step))
    return kept


def gap(ours: list[Step], theirs: list[Step]) -> float:
    return max(float(np.abs(a.logits - b.logits).max()) for a, b in zip(ours, theirs, strict=True))


@pytest.fixture(autouse=True)
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path))


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_fast_is_exact_but_for_the_order_of_sums(kind: str) -> None:
    runner = in_mode("fast", kind)
    exact, ours = steps_of(ready(kind)), steps_of(runner)
    limit = logit_tolerance("float32", exact[0].logits)
    assert 0 < gap(ours[1:], exact[1:]) <= limit  # 0 would mean that nothing of ours ran
    np.testing.assert_array_equal(ours[0].logits, exact[0].logits)  # a prefill is the library's
    for a, b in zip(ours[3].layers, exact[3].layers, strict=True):
        assert a.kind == b.kind
        if a.queries is not None and b.queries is not None:
            np.testing.assert_allclose(a.queries, b.queries, atol=1e-4, rtol=1e-4)
    assert (ours[3].mlp_ms > 0).all()
    assert ours[3].head_ms


@needs_compiler
def test_every_part_goes_through_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    called: Counter[str] = Counter()
    library = kernels.library()

    class Counting:
        def __getattr__(self, name: str) -> Any:
            def call(*given: Any) -> None:
                called[name] += 1
                getattr(library, name)(*given)

            return call

    monkeypatch.setattr(kernels, "library", Counting)
    runner = ready()
    runner.use(OneRow(runner.model, rounded=False))
    called.clear()  # of the trials
    steps_of(runner, 2)  # a prefill and one step of three layers
    assert called == {"linear32": 3 * 7 + 1, "rms_norm": 3 * 2 + 1, "rotary": 3 * 2}
    called.clear()
    steps_of(runner, 2, cache=False)
    assert not called


@needs_compiler
def test_rounded_is_the_library_on_rounded_weights() -> None:
    exact, ours = steps_of(ready()), steps_of(in_mode("rounded"))
    by_hand = ready()
    for module in by_hand.model.modules():
        if type(module) is torch.nn.Linear:
            module.weight.data = module.weight.data.half().float()
    assert gap(ours, steps_of(by_hand)) < 1e-4
    assert gap(ours, exact) > 1e-3
    rounded = in_mode("rounded")
    for request in ({"causal_mask": False}, {"cache": False}, {"padding": "left", "pad": 3}):
        assert gap(steps_of(rounded, 3, **request), steps_of(by_hand, 3, **request)) < 1e-4


@needs_compiler
def test_figures_are_measured_once_and_on_the_card() -> None:
    runner = ready()
    modes.switch(runner, "exact", quiet, never, False)
    assert runner.loaded.card.modes == ()  # not measured yet
    said: list[str] = []
    modes.switch(runner, "rounded", lambda text, _: said.append(text), never, False)
    card = runner.loaded.card
    (figures,) = card.modes
    assert (card.mode, figures.mode) == ("rounded", "rounded")
    assert figures.steps == modes.STEPS + 1
    assert figures.exact_ms > 0 < figures.mode_ms
    assert 1e-4 < figures.max_logit_difference < 1
    assert any(text.startswith("Measuring") for text in said)
    again = ready()
    said.clear()
    modes.switch(again, "rounded", lambda text, _: said.append(text), never, False)
    assert said == ["Testing what works in mode rounded"]
    assert again.loaded.card.modes == (figures,)
    assert again.loaded.card.tested == ""  # in this mode, just now
    assert "cached steps equal uncached ones" in again.loaded.card.words("cache")


@needs_compiler
def test_a_mode_that_gives_other_numbers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    product = OneRow._product

    def off(self: OneRow, linear: torch.nn.Linear) -> Any:
        right = product(self, linear)
        return lambda tensor: right(tensor) * 1.01 if tensor.numel() == 32 else right(tensor)

    monkeypatch.setattr(OneRow, "_product", off)
    for mode in ("fast", "rounded"):
        runner = ready()
        before = runner.loaded
        modes.switch(runner, mode, quiet, never, True)
        card = runner.loaded.card
        assert card.mode_refused.startswith(f"Mode {mode} is not offered on llama")
        assert (card.mode, card.modes) == ("exact", ())
        assert card.capabilities == before.card.capabilities
        assert gap(steps_of(runner), steps_of(ready())) == 0  # exact again, to the bit


@needs_compiler
def test_a_token_reads_half_the_bytes_of_rounded_matrices() -> None:
    model = in_mode("rounded").model
    runner = ready()
    assert step_bytes(model) == step_bytes(runner.model)
    modes.switch(runner, "rounded", quiet, never, True)
    assert runner.one_row is not None
    linears = {m.weight for m in runner.model.modules() if type(m) is torch.nn.Linear}
    saved = sum(weight.numel() for weight in linears) * 2
    assert step_bytes(runner.model, runner.one_row.bytes_read) == step_bytes(model) - saved


@needs_compiler
def test_leaving_and_cancelling_leave_nothing_behind() -> None:
    runner = ready()
    kept = {name: set(vars(module)) for name, module in runner.model.named_modules()}
    before = runner.loaded
    stops = iter([False] * 60)
    with pytest.raises(Cancelled):
        modes.try_out(runner, "rounded", quiet, lambda: next(stops, True))
    entered, _ = modes.try_out(runner, "rounded", quiet, never)
    entered.leave()
    assert runner.loaded is before
    assert {name: set(vars(module)) for name, module in runner.model.named_modules()} == kept
    assert gap(steps_of(runner), steps_of(ready())) == 0


def test_what_a_mode_cannot_do_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for mode, rounded in (("fast", False), ("rounded", True)):
        words = rf"^Mode {mode} runs only on the CPU in float32"
        with pytest.raises(BadInput, match=words):
            OneRow(tiny_model("llama").bfloat16(), rounded=rounded)
    kernels.library.cache_clear()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BadInput, match="a C compiler, and none was found"):
        OneRow(tiny_model("llama"), rounded=False)
    kernels.library.cache_clear()


@needs_compiler
def test_models_without_linear_layers_or_with_huge_weights_are_refused() -> None:
    model = tiny_model("gpt2")
    model.lm_head = torch.nn.Identity()
    with pytest.raises(BadInput, match="has none"):
        OneRow(model, rounded=False)
    model = tiny_model("llama")
    weights = model.model.layers[2].mlp.up_proj.weight
    weights.data[3, 3] = 1e5
    first = model.model.layers[0].mlp.up_proj.weight.data_ptr()
    with pytest.raises(BadInput, match="65,504"):
        OneRow(model, rounded=True)
    assert model.model.layers[0].mlp.up_proj.weight.data_ptr() == first
    weights.data[3, 3] = float("nan")
    with pytest.raises(BadInput, match="65,504"):
        OneRow(model, rounded=True)


@needs_compiler
def test_norms_that_are_none_are_left_alone() -> None:
    class GatedRMSNorm(torch.nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(32))
            self.eps, self.scale = 1e-6, scale

    class Needy(GatedRMSNorm):
        def forward(self, tensor: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.rms_norm(tensor, (32,), self.weight, self.eps) * gate

    class Scaled(GatedRMSNorm):
        def forward(self, tensor: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.rms_norm(tensor, (32,), self.weight, self.eps) * self.scale

    model = tiny_model("llama")
    model.needy, model.scaled, model.plain = Needy(1), Scaled(1.001), Scaled(1)
    Needy.__name__, Scaled.__name__ = "NeedyRMSNorm", "ScaledRMSNorm"
    with OneRow(model, rounded=False).laid():
        laid = {name for name, module in model.named_modules() if "forward" in vars(module)}
    assert "plain" in laid
    assert not {"needy", "scaled"} & laid


@needs_compiler
def test_what_does_not_fit_is_not_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_row, "available_bytes", lambda: 10_000)
    model = tiny_model("llama")
    first = model.lm_head.weight.data_ptr()
    with pytest.raises(BadInput, match=r"takes 0\.0 GB of memory"):
        OneRow(model, rounded=True)
    assert model.lm_head.weight.data_ptr() == first


@needs_compiler
@pytest.mark.parametrize("rows", [1, 5, 300])
@pytest.mark.parametrize("width", [1, 31, 32, 33, 576])
def test_the_kernels_on_every_width(rows: int, width: int) -> None:
    linear = torch.nn.Linear(width, rows).requires_grad_(False)
    linear.weight.data = linear.weight.data.half().float()
    library, half = kernels.library(), linear.weight.data.half()
    for bias in (linear.bias, None):
        x, y32, y16 = torch.randn(width), torch.empty(rows), torch.empty(rows)
        addend = None if bias is None else bias.data_ptr()
        for function, weight, made in (
            (library.linear32, linear.weight, y32), (library.linear16, half, y16)
        ):  # fmt: skip
            function(weight.data_ptr(), addend, x.data_ptr(), made.data_ptr(), rows, width, 1)
        theirs = torch.nn.functional.linear(x, linear.weight, bias)
        torch.testing.assert_close(y32, theirs, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(y16, theirs, atol=1e-5, rtol=1e-5)


@needs_compiler
def test_rotary_positions_stand_in_for_what_they_equal_and_for_nothing_else() -> None:
    from transformers.models.cohere import modeling_cohere as interleaved
    from transformers.models.llama import modeling_llama as halves

    stock = halves.apply_rotary_pos_emb
    q, k = torch.randn(1, 4, 1, 8), torch.randn(1, 2, 1, 8)
    cos, sin = torch.randn(1, 1, 8), torch.randn(1, 1, 8)
    with OneRotary(tiny_model("llama"), kernels.library()).laid():
        ours = halves.apply_rotary_pos_emb
        assert ours is not stock
        for mine, theirs in zip(ours(q, k, cos, sin), stock(q, k, cos, sin), strict=True):
            torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=1e-6)
        several = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 3, 8)
        angles = torch.randn(1, 3, 8), torch.randn(1, 3, 8)
        torch.testing.assert_close(ours(*several, *angles), stock(*several, *angles))
    assert halves.apply_rotary_pos_emb is stock
    model = torch.nn.Module()
    model.inner = object.__new__(interleaved.CohereAttention)
    torch.nn.Module.__init__(model.inner)
    stock = interleaved.apply_rotary_pos_emb
    with OneRotary(model, kernels.library()).laid():
        assert interleaved.apply_rotary_pos_emb is stock


@needs_compiler
def test_what_is_not_a_number_stays_so() -> None:
    library, weight = kernels.library(), torch.ones(2, 40)
    weight[0, 3], weight[1, 39] = float("nan"), float("inf")
    for function, stored in ((library.linear32, weight), (library.linear16, weight.half())):
        x, made = torch.ones(40), torch.empty(2)
        function(stored.data_ptr(), None, x.data_ptr(), made.data_ptr(), 2, 40, 1)
        assert made[0].isnan()
        assert made[1] == float("inf")
