"""A training run, its repeatability, and the folder it is saved as."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from explorer import disk
from explorer.engine.callbacks import never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.loading import loading
from explorer.engine.training import tasks
from explorer.engine.training.training import WARM_UP, Training
from explorer.trace.training.settings import BUILDS, TrainingSettings


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    torch.set_num_threads(1)


def small(**changed: Any) -> Training:
    return Training(
        TrainingSettings(**{"width": 16, "heads": 2, "layers": 1, "steps": 20, **changed})
    )


def losses(training: Training, count: int) -> list[float]:
    return [training.advance().loss for _ in range(count)]


@pytest.mark.parametrize("build", BUILDS)
def test_a_seed_gives_the_same_losses_bit_for_bit(build: Any) -> None:
    first, second, other = (small(build=build, seed=seed) for seed in (3, 3, 4))
    found = losses(first, 3)
    second.maps(), second.accuracy(), second.held_out_loss(), second.accuracy_by_position()
    torch.manual_seed(99)
    assert losses(second, 3) == found != losses(other, 3)


@pytest.mark.parametrize("step", [0, 3])
def test_from_a_state_the_losses_are_those_that_followed_it(step: int) -> None:
    training = small()
    losses(training, step)
    state = training.state()
    found = losses(training, 4)
    training.rate = 1.0
    losses(training, 1)
    training.restore(state)
    assert (training.step, training.rate) == (step, 3e-3)
    assert losses(training, 4) == found
    anew = small()
    anew.restore(state)
    assert losses(anew, 4) == found


def test_a_damaged_state_changes_nothing() -> None:
    training = small()
    state = small(width=32).state()
    for broken in (state, state[:-1], b"", b"\0" * 100):
        with pytest.raises(BadInput):
            training.restore(broken)
    assert losses(training, 2) == losses(small(), 2)


def test_the_rate_rises_stays_and_falls() -> None:
    training = small(steps=4 * WARM_UP)
    shares = []
    for step in range(4 * WARM_UP):
        training.step = step
        shares.append(training.share_of_rate)
    assert shares[0] == 1 / WARM_UP
    assert shares[WARM_UP : 2 * WARM_UP] == [1.0] * WARM_UP
    assert shares[3 * WARM_UP] == pytest.approx(0.5)
    assert shares[-1] == pytest.approx(0.05)
    assert small(wrong=("warm-up",)).share_of_rate == 1.0


def test_an_update_that_is_cancelled_or_diverges_is_not_made() -> None:
    training = small()
    with pytest.raises(Cancelled):
        training.advance(lambda: True)
    assert training.step == 0
    with torch.no_grad():
        training.model.lm_head.weight[0, 0] = math.nan
    with pytest.raises(BadInput, match="too high"):
        training.advance(never)
    assert training.step == 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"width": 18, "heads": 4}, "even multiple"),
        ({"width": 20, "heads": 4}, "even width"),
        ({"task": "nothing.txt"}, "is neither a task"),
        ({"task": "/dev/null"}, "is neither a task"),
    ],
)
def test_what_can_not_be_trained_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        small(**changed)


# -- the mistakes, each seen where it is made


@pytest.mark.parametrize("build", BUILDS)
def test_maps_show_the_mask_that_is_trained_with(build: Any) -> None:
    for wrong, hidden in (((), "above"), (("mask",), ""), (("transposed",), "below")):
        maps = small(build=build, wrong=wrong).maps()
        assert maps.shape == (1, 2, 16, 16)
        np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
        above, below = np.triu(maps, 1).max(), np.tril(maps, -1).max()
        assert (above == 0, below == 0) == (hidden == "above", hidden == "below")


def test_without_shift_the_loss_is_that_of_the_token_itself() -> None:
    training = small(wrong=("shift",))
    rows = training.held_out
    with torch.no_grad():
        logits = training.model(torch.from_numpy(rows.ids)).log_softmax(-1).numpy()
    own = np.take_along_axis(logits, rows.ids[..., None], axis=2)[..., 0]
    expected = -own[rows.ids != tasks.PAD_ID].mean()
    assert training.held_out_loss() == pytest.approx(expected, abs=1e-5)
    assert small().held_out_loss() != pytest.approx(expected, abs=1e-3)


def test_padding_counts_only_where_it_is_asked_for() -> None:
    right, wrong = small(), small(wrong=("padding",))
    ids = torch.from_numpy(right.held_out.ids)
    with torch.no_grad():
        logits = right.model(ids)[:, :-1].log_softmax(-1)
    nats = -logits.gather(2, ids[:, 1:, None])[..., 0]
    there = ids[:, 1:] != tasks.PAD_ID
    assert right.held_out_loss() == pytest.approx(nats[there].mean().item(), abs=1e-5)
    assert wrong.held_out_loss() == pytest.approx(nats.mean().item(), abs=1e-5)
    assert right.lowest_loss == tasks.lowest_copy_loss()
    assert wrong.lowest_loss is None  # a mean over padding, too, is below that of the task


@pytest.mark.parametrize("build", BUILDS)
def test_without_positions_earlier_tokens_have_no_order(build: Any) -> None:
    for wrong, same in ((("positions",), True), ((), False)):
        training = small(build=build, wrong=wrong)
        losses(training, 2)  # the table of positions stays empty
        with torch.no_grad():
            ids = torch.tensor([[65, 66, 67, 68, 69], [67, 66, 65, 68, 69]])
            logits = training.model(ids)[:, -1]
        assert ((logits[0] - logits[1]).abs().max().item() < 1e-5) == same


@pytest.mark.parametrize("build", BUILDS)
def test_without_residual_connections_a_layer_that_says_nothing_leaves_nothing(build: Any) -> None:
    for wrong, lost in ((("residual",), True), ((), False)):
        training = small(build=build, wrong=wrong)
        with torch.no_grad():
            for name, weight in training.model.named_parameters():
                if name.endswith(("down_proj.weight", "linear2.weight", "mlp.c_proj.weight")):
                    weight.zero_()
            ids = torch.tensor([[65, 66], [67, 68]])
            logits = training.model(ids)
        assert (logits.std(0).max().item() < 1e-6) == lost


def test_tied_and_untied_heads() -> None:
    tied, untied = small(), small(wrong=("untied",))
    assert untied.parameters - tied.parameters == tasks.VOCABULARY * 16
    losses(tied, 2)
    assert torch.equal(tied.model.lm_head.weight, tied.model.model.embed_tokens.weight)


# -- tasks


def test_rows_of_a_copy_repeat_and_held_out_lengths_are_not_trained() -> None:
    rows = tasks.Copy().rows(np.random.default_rng(0), 500)
    lengths = set()
    for ids, labels in zip(rows.ids, rows.labels, strict=True):
        text = ids[ids != tasks.PAD_ID]
        length = next(n for n in range(1, 32) if (text[n:] == text[:-n]).all())
        lengths.add(length)
        assert len(text) >= 2 * length
        assert len(set(text[:length])) == length
        assert ((labels == ids) == (ids != tasks.PAD_ID)).all()
    assert lengths == set(tasks.TRAINED)
    assert {p.ids.shape[1] - 1 for p in tasks.Copy().prompts(np.random.default_rng(0), 2)} == set(
        tasks.HELD_OUT
    )
    assert not set(tasks.HELD_OUT) & set(tasks.TRAINED)


def test_the_lowest_loss_is_that_of_the_best_guesser() -> None:
    """Over 20,000 rows: chances of what follows are counted, where the guesser has to guess."""
    rows = tasks.Copy().rows(np.random.default_rng(0), 20_000)
    first = rows.ids[:, :1]
    again = np.where(rows.ids == first, np.arange(32), 99)[:, 1:].min(1)  # where it is repeated
    nats = labels = 0.0
    for slot in range(1, 32):
        open_ = again >= slot
        ends = (again == slot)[open_].mean() if open_.any() else 0.0
        count, ending = open_.sum(), (again == slot).sum()
        nats += ending * -math.log(ends) if ends else 0.0
        nats += (count - ending) * -math.log((1 - ends) / (64 - slot)) if ends < 1 else 0.0
        labels += (rows.labels[:, slot] >= 0).sum()
    assert tasks.lowest_copy_loss() == pytest.approx(nats / labels, rel=0.01)


def test_the_other_tasks_label_what_is_to_follow() -> None:
    rng = np.random.default_rng(0)
    rows = tasks.Reverse().rows(rng, 50)
    for ids, labels in zip(rows.ids, rows.labels, strict=True):
        at = list(ids).index(tasks.TURN)
        assert (ids[at + 1 : 2 * at + 1] == ids[:at][::-1]).all()
        assert (labels >= 0).tolist() == [at < i <= 2 * at for i in range(len(ids))]
    rows = tasks.Previous().rows(rng, 50)
    for ids, labels in zip(rows.ids, rows.labels, strict=True):
        there = int((ids != tasks.PAD_ID).sum())
        assert (labels[2:there] == ids[: there - 2]).all()
        assert set(labels[:2]) | set(labels[there:]) == {-100}


def test_a_text_file_is_learned_byte_by_byte(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("the quick brown fox jumps over the lazy dog. " * 60, encoding="utf-8")
    training = small(task=str(file), steps=150, rate=1e-2)
    assert training.lowest_loss is None
    assert losses(training, 150)[-1] < 1.0
    assert training.accuracy() > 0.3


def test_a_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(b"a" * 100)
    with pytest.raises(BadInput, match="too short"):
        small(task=str(file))


# -- the folder


SAVED = [(build, wrong) for build in BUILDS for wrong in ((), ("positions",), ("untied", "mask"))]


@pytest.mark.parametrize(("build", "wrong"), SAVED)
def test_the_saved_folder_is_the_same_model_in_transformers(
    build: Any, wrong: Any, tmp_path: Path
) -> None:
    training = small(build=build, wrong=wrong)
    losses(training, 2)
    training.save(tmp_path / "model")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval()
    ids = torch.from_numpy(training.held_out.ids[:4])
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, training.model(ids), atol=1e-4, rtol=0)
    prompt, count = torch.from_numpy(training.prompts[0].ids), 3
    found = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=False
    )
    assert (found[:, -count:].numpy() == training.generated(0)[:, :count]).all()


def test_the_program_opens_the_saved_folder_and_reads_bytes(tmp_path: Path) -> None:
    training = small()
    training.save(tmp_path / "model")
    loaded = loading.load(str(tmp_path / "model"))
    assert loaded.card.warnings == ()
    assert loaded.card.pad_id == tasks.PAD_ID
    for text in ("machines|", "ein Ü\n", "\0"):
        tokens = loaded.tokenizer.encode(text).tokens
        assert [token.id for token in tokens] == list(text.encode())
    assert [loaded.tokenizer.token(i, "prompt").raw for i in range(256)] == [
        bytes([i]) for i in range(256)
    ]


def test_a_folder_in_use_a_full_disk_and_no_residual_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").write_text("keep")
    with pytest.raises(BadInput, match="not empty"):
        small().save(tmp_path)
    with pytest.raises(BadInput, match="residual"):
        small(wrong=("residual",)).save(tmp_path / "new")

    def full(path: Path, data: bytes) -> None:
        if path.name == "model.safetensors":
            raise OSError(28, "No space left on device")
        path.write_bytes(data)

    monkeypatch.setattr(disk, "write", full)
    with pytest.raises(BadInput, match="No space left on device"):
        small().save(tmp_path / "new")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "mine"]


# -- it learns


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_preset_learns_to_copy(seed: int) -> None:
    training = Training(TrainingSettings(seed=seed))
    while training.step < training.settings.steps:
        done = training.advance()
    assert done.copy_accuracy is not None
    assert done.copy_accuracy >= 0.95
    assert training.lowest_loss is not None
    assert training.lowest_loss < done.held_out_loss < training.lowest_loss + 0.3


def test_one_layer_names_the_previous_token_in_seconds() -> None:
    training = small(task="previous", steps=150, rate=1e-2)
    losses(training, 150)
    assert training.accuracy() > 0.9
