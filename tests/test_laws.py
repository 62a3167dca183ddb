"""The house's laws: what imports what, what an import costs, what is public."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import needlepoint

PACKAGE = Path(needlepoint.__file__).parent
ROOMS = ["text", "plan", "ask", "score", "learn", "show"]
HEAVY = ["torch", "transformers", "numpy", "xllamacpp", "vl_convert", "ray", "tokenizers", "splintr", "jinja2"]
EDGE = ["pydantic", "httpx2", "typer", "click", "rich"]


def imported_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_needlepoint_pulls_in_nothing_heavy() -> None:
    assert not imported_by("import needlepoint") & {*HEAVY, *EDGE}


@pytest.mark.parametrize("module", ["types", "errors", "text", "plan"])
def test_the_inner_rooms_import_without_the_packages_of_the_edge(module: str) -> None:
    folder = PACKAGE / module
    names = [f"needlepoint.{module}"]
    if folder.is_dir():
        names += [f"needlepoint.{module}.{file.stem}" for file in folder.glob("*.py") if file.stem != "__init__"]
    found = imported_by("; ".join(f"import {name}" for name in names))
    assert not found & {*EDGE, "torch", "transformers", "numpy", "xllamacpp"}


def test_help_needs_no_tokenizer_and_no_settings() -> None:
    code = (
        "import sys; sys.argv[1:] = ['--help']\n"
        "try:\n from needlepoint.cli import main; main()\nexcept SystemExit: pass\n"
        "print('MODULES', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = {name.split(".")[0] for name in done.stdout.split("MODULES")[1].split()}
    assert not found & {*HEAVY, "pydantic", "httpx2"}


def internal_imports(file: Path) -> set[str]:
    """The rooms and modules of needlepoint that a file imports."""
    package = file.relative_to(PACKAGE.parent).with_suffix("").parts
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level]) if node.level else []
            parts = base + (node.module.split(".") if node.module else [])
            if parts[:1] == ["needlepoint"]:
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("needlepoint.")}
    return found


@pytest.mark.parametrize("room", [room for room in ROOMS if (PACKAGE / room).is_dir()])
def test_a_room_imports_only_rooms_to_its_left(room: str) -> None:
    allowed = {*ROOMS[: ROOMS.index(room) + 1], "types", "errors", "__version__"}
    for file in (PACKAGE / room).rglob("*.py"):
        assert internal_imports(file) <= allowed, file


PURE = {"boundaries", "clean", "chat", "formats", "families", "tokenizers", "encodings"}


def test_pure_rooms_have_no_clock_no_network_and_no_global_randomness() -> None:
    rooms = [*(PACKAGE / "plan").glob("*.py"), *(PACKAGE / "learn").glob("*.py")]
    for file in [*rooms, *((PACKAGE / "text" / f"{name}.py") for name in PURE)]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                )
                assert not {name.split(".")[0] for name in names} & {
                    "time",
                    "socket",
                    "urllib",
                    "http",
                    "subprocess",
                }, file
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = ast.unparse(node.func)
                assert not (called.startswith("random.") and called != "random.Random"), (file, called)
                assert called not in {"datetime.now", "date.today", "os.urandom"}, (file, called)


def test_the_public_surface_is_what_all_says() -> None:
    for name in needlepoint.__all__:
        assert getattr(needlepoint, name) is not None
    assert needlepoint.__all__ == sorted(needlepoint.__all__)


def test_modules_stay_of_a_size_to_read() -> None:
    for file in PACKAGE.rglob("*.py"):
        if file.stem not in {"vocabulary"}:
            assert len(file.read_text(encoding="utf-8").splitlines()) <= 500, file


def test_the_version_is_that_of_the_project() -> None:
    text = (PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{needlepoint.__version__}"' in text
