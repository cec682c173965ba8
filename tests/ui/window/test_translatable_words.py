"""Every sentence of the window reaches the translators: pyside6-lupdate finds all of them."""

from __future__ import annotations

import ast
import subprocess
import sysconfig
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import explorer

ROOT = Path(explorer.__file__).parent
FILES = [ROOT / "app.py", *sorted((ROOT / "ui").rglob("*.py"))]
FIRST = {"tr": 0, "translate": 1, "QT_TRANSLATE_NOOP": 1}  # where a call has its words
SHOWN = {
    "setText", "setToolTip", "setWindowTitle", "setAccessibleName", "setAccessibleDescription",
    "setPlaceholderText", "setStatusTip", "setWhatsThis", "setInformativeText", "setTitle",
    "setSuffix", "setPrefix", "setSpecialValueText", "setTabText", "addAction", "addTab",
    "addMenu", "addItem", "addItems", "add_button", "setHorizontalHeaderLabels", "QLabel",
    "QPushButton", "QCheckBox", "QRadioButton", "QGroupBox", "QToolButton", "ElidedLabel",
    "SentenceLabel", "TermLabel", "TermBox",
}  # fmt: skip


def test_lupdate_finds_every_word_that_is_marked(tmp_path: Path) -> None:
    target = tmp_path / "words.ts"
    tool = Path(sysconfig.get_path("scripts")) / "pyside6-lupdate"
    command = [str(tool), *map(str, FILES), "-ts", str(target)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    found = {source.text for source in ElementTree.parse(target).iter("source")}
    marked = {words: place for path in FILES for words, place in _marked(path)}
    missing = {words: place for words, place in marked.items() if words not in found}
    assert len(marked) > 900
    assert not missing


def test_nothing_is_shown_that_is_not_marked() -> None:
    assert not [place for path in FILES for place in _unmarked(path)]


def _marked(path: Path) -> Iterator[tuple[str, str]]:
    """The literals that are given to a marking call, anywhere in its argument."""
    for call in _calls(path):
        at = FIRST.get(_name(call))
        if at is not None and len(call.args) > at:
            for part in ast.walk(call.args[at]):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value, f"{path.name}:{part.lineno}"


def _unmarked(path: Path) -> Iterator[str]:
    """Words that go to a widget as they are; single letters and marks are no words."""
    for call in _calls(path):
        if _name(call) in SHOWN:
            for argument in call.args:
                for words in _texts(argument):
                    if any(a.isalpha() and b.isalpha() for a, b in pairwise(words)):
                        yield f"{path.name}:{call.lineno}: {words}"


def _texts(node: ast.expr) -> Iterator[str]:
    """Literals in an argument, but for those inside calls: what they give is theirs to mark."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from (part.value for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.BinOp | ast.IfExp | ast.List | ast.Tuple):
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr) and part is not getattr(node, "test", None):
                yield from _texts(part)


def _calls(path: Path) -> list[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _name(call: ast.Call) -> str:
    """What is called, without what it is called on."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))
