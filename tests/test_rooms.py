"""How the program is laid out: every file has a room, and imports between rooms have one direction.

The order of the rooms is in pyproject.toml, where import-linter reads it.  Imports for types alone
count like any other.
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).parents[1] / "explorer"
FILES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({file.parent for file in FILES})
MOST_MODULES = 15


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def folder_name(folder: Path) -> str:
    return folder.relative_to(PACKAGE.parent).as_posix()


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("explorer", cache_dir=None)


def cycle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """One cycle, if there is any."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_file_is_under_the_import_rules(graph: grimp.ImportGraph) -> None:
    assert set(map(module_of, FILES)) == graph.modules


@pytest.mark.parametrize("folder", FOLDERS, ids=folder_name)
def test_a_folder_says_what_it_holds_and_can_be_taken_in(folder: Path) -> None:
    init = folder / "__init__.py"
    assert init.exists()
    assert ast.get_docstring(ast.parse(init.read_text(encoding="utf-8")))
    modules = [file.name for file in folder.glob("*.py") if file != init]
    assert len(modules) <= MOST_MODULES


def test_every_module_and_file_that_is_named_exists() -> None:
    """In strings too: scripts of tests, names in the README."""
    modules = set(map(module_of, FILES))
    project = PACKAGE.parent
    missing = []
    for text in [*project.glob("*.md"), *FILES, *(project / "tests").rglob("*.py")]:
        words = text.read_text(encoding="utf-8")
        for module in re.findall(r"(?:from|import) (explorer(?:\.\w+)*)", words):
            known = module in modules or module.rpartition(".")[0] in modules
            missing += [] if known else [(text.name, module)]
        for path in re.findall(r"\bexplorer/[\w/]+\.py\b", words):
            missing += [] if (project / path).exists() else [(text.name, path)]
    assert missing == []


def test_a_class_name_means_one_thing() -> None:
    places = defaultdict(list)
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module_of(file))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_module_imports_itself_by_way_of_others(graph: grimp.ImportGraph) -> None:
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert cycle(imports) == []


def test_no_folder_imports_itself_by_way_of_its_neighbours(graph: grimp.ImportGraph) -> None:
    for parent in sorted(graph.modules):
        rooms = graph.find_children(parent)
        room_of = {name: room for room in rooms for name in graph.find_descendants(room) | {room}}
        imports: dict[str, set[str]] = {room: set() for room in rooms}
        for name, room in room_of.items():
            found = graph.find_modules_directly_imported_by(name)
            imports[room] |= {room_of[other] for other in found if other in room_of} - {room}
        assert cycle(imports) == []


@pytest.mark.parametrize("module", ["explorer.ui", "explorer.ui.window", "explorer.app"])
def test_the_window_is_on_screen_before_anything_heavy_is_read(module: str) -> None:
    code = (
        f"import sys, {module}; "
        "print({'torch', 'transformers', 'tiktoken', 'pyqtgraph', 'matplotlib'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert done.stdout.strip() == "set()"


def test_the_functions_that_the_readme_follows_are_there() -> None:
    """From the prompt to its map: `Class.function`, or a function of a module."""
    text = (PACKAGE.parent / "README.md").read_text(encoding="utf-8")
    paragraph = text.partition("**Follow a step**")[2].partition("\n\n")[0]
    there = set()
    for file in FILES:
        module = ast.parse(file.read_text(encoding="utf-8"))
        holders = [
            (node.name + ".", node) for node in module.body if isinstance(node, ast.ClassDef)
        ]
        for prefix, holder in [("", module), *holders]:
            there |= {
                prefix + node.name for node in holder.body if isinstance(node, ast.FunctionDef)
            }
    followed = re.findall(r"`([\w.]+)`", paragraph)
    assert len(followed) >= 20
    assert [name for name in followed if name not in there] == []
