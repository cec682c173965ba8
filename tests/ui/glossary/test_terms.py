"""The glossary: short plain sentences, every term that the window names, search and languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import explorer.ui
from explorer.ui.glossary import terms
from explorer.ui.glossary.terms import Glossary, Term, glossary
from explorer.ui.panels import PANELS

FILES = sorted(Path(explorer.ui.__file__).parent.rglob("*.py"))
ALL = glossary()
AREAS = {"tokens", "tools", "settings", *(f"panel:{place.id}" for place in PANELS)}
FIELD = {
    "token", "head", "layer", "query", "key", "value", "attention-weight", "logit", "kv-cache",
    "prefill", "decode", "causal-mask", "left-padding", "right-padding", "position-id", "sampling",
    "temperature", "top-k", "top-p", "min-p", "repetition-penalty", "entropy", "surprisal",
    "perplexity", "residual-stream", "induction-head", "branch", "seed", "greedy", "softmax",
    "vocabulary", "context-length", "byte-level-bpe", "chat-template",
}  # fmt: skip


def used(path: Path) -> Iterator[str]:
    """The terms that a module names: `term="…"`, a panel's TERM and the tables _TERMS."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        values: list[ast.expr] = []
        if isinstance(node, ast.keyword) and node.arg == "term":
            values = [node.value]
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if names & {"TERM", "_TERMS"}:
                table = node.value
                if isinstance(table, ast.Dict):
                    values = table.values
                elif isinstance(table, ast.Tuple):
                    values = table.elts
                else:
                    assert "TERM" in names
                    values = [table]
        yield from (str(v.value) for v in values if isinstance(v, ast.Constant) and v.value)


def test_every_term_that_the_window_names_is_in_the_glossary() -> None:
    found = {(path.name, name) for path in FILES for name in used(path)} - {("labels.py", "term")}
    assert len(found) >= 25
    assert {(file, name) for file, name in found if name not in ALL.terms} == set()


def test_the_words_of_the_field_are_all_there() -> None:
    assert FIELD - ALL.terms.keys() == set()


@pytest.mark.parametrize("name", ALL.terms)
def test_a_text_is_two_short_sentences(name: str) -> None:
    term = ALL.terms[name]
    sentences = re.split(r"(?<=[.!?])\s+", term.text)
    assert len(term.text.split()) < 40
    assert max(len(sentence.split()) for sentence in sentences) < 20
    assert len(sentences) <= 2
    assert term.text.endswith(".")
    assert term.group in ALL.groups
    assert term.show in AREAS


def test_no_two_terms_are_the_same_word() -> None:
    words = [term.word.casefold() for term in ALL.terms.values()]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("query", "first"),
    [("KV", "kv-cache"), ("nucleus", "top-p"), ("token", "token"),
     ("gqa", "grouped-query-attention"), ("  TOP p ", "top-p")],
)  # fmt: skip
def test_the_search_finds_a_term_by_any_of_its_names(query: str, first: str) -> None:
    assert next(iter(ALL.matching(query))) == first


def test_terms_that_only_mention_a_word_come_after_those_named_so() -> None:
    found = list(ALL.matching("softmax"))
    assert found[0] == "softmax"
    assert {"logit", "temperature"} <= set(found[1:])
    assert not ALL.matching("zebra")
    assert list(ALL.matching("")) == list(ALL.terms)


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of another language, beside the English one."""
    real = terms.asset
    folder = tmp_path / "de"
    folder.mkdir()

    def asset(*parts: str) -> Path:
        return real(*parts) if parts[1] == "en" else tmp_path.joinpath(*parts[1:])

    monkeypatch.setattr(terms, "asset", asset)
    glossary.cache_clear()
    yield folder / "glossary.toml"
    glossary.cache_clear()


def test_another_language_may_leave_terms_out(german: Path) -> None:
    german.write_text(
        '[groups]\nmodel = "Im Modell"\n[terms.layer]\nword = "Schicht"\ngroup = "model"\n'
        'text = "Eine Stufe des Modells."\n',
        encoding="utf-8",
    )
    own = glossary("de")
    assert own.terms["layer"] == Term("Schicht", "model", "Eine Stufe des Modells.")
    assert own.groups["model"] == "Im Modell"
    assert own.terms["head"] == ALL.terms["head"]
    assert list(own.terms) == list(ALL.terms)


@pytest.mark.parametrize("text", [None, "word = ", "[terms.layer]\nword = 3\n", "groups = 1"])
def test_a_language_that_cannot_be_read_is_english(german: Path, text: str | None) -> None:
    if text is not None:
        german.write_text(text, encoding="utf-8")
    own: Glossary = glossary("de")
    assert own == ALL
