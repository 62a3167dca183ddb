"""The docs say what is true: every flag is described, examples and the README's commands run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def flags_of(command: str) -> set[str]:
    import typer.main

    from needlepoint.cli import app

    found = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    options = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return {option for option in options if option.startswith("--")} - {"--help"}


def flags_in(page: str) -> set[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return set(re.findall(r"^\| `(--[a-z-]+)`", text, re.MULTILINE))


def test_every_flag_of_prompts_is_in_its_page_and_no_other() -> None:
    assert flags_in("prompts.md") == flags_of("prompts")


def test_every_flag_of_eval_is_in_its_pages_and_no_other() -> None:
    assert flags_of("eval") <= flags_in("prompts.md") | flags_in("eval.md")
    assert flags_in("eval.md") <= flags_of("eval")


def test_every_flag_of_compare_is_in_its_page_and_no_other() -> None:
    assert flags_in("compare.md") == flags_of("compare")


def test_every_flag_of_import_is_in_its_page_and_no_other() -> None:
    assert flags_in("import.md") == flags_of("import")


def test_every_flag_of_report_is_in_its_page_and_no_other() -> None:
    assert flags_in("report.md") == flags_of("report")


def test_every_flag_of_limit_is_in_its_pages_and_no_other() -> None:
    pages = flags_in("prompts.md") | flags_in("eval.md") | flags_in("limit.md")
    assert flags_of("limit") <= pages | {"--debug"}
    assert flags_in("limit.md") <= flags_of("limit")


def test_every_module_is_on_the_plan_of_the_house() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for file in (ROOT / "src" / "needlepoint").rglob("*.py"):
        name = file.parent.name if file.stem == "__init__" else file.stem
        assert re.search(rf"\b{name}\b", page), name


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(example: Path) -> None:
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout and not done.stderr


def test_the_exactness_matrix_finds_no_fault_on_a_small_grid(
    tmp_path: Path, prose: dict[str, Callable[..., str]]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text(prose["en"](400), "utf-8")
    command = [sys.executable, str(ROOT / "benchmarks" / "exactness.py"), "--corpus", str(text)]
    small = ["--families", "qwen3,gemma3", "--lengths", "256,1k,4k", "--depths", "0:100:11"]
    done = subprocess.run([*command, *small], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "66 of 66 prompts have exactly the asked number of tokens; 0 faults." in done.stdout


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


def test_commands_in_the_pages_have_flags_that_exist() -> None:
    found = 0
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for block in re.findall(r"```(?:bash|yaml)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in re.findall(r"^(?:- run: )?(needlepoint .+)$", block.replace("\\\n", " "), re.MULTILINE):
                words = shlex.split(line, comments=True)
                given = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
                if words[1] != "assets":
                    assert given <= flags_of(words[1]), (page.name, line)
                    found += 1
    assert found > 40


def test_the_readme_marks_its_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("run", "test"):
        assert len(re.findall(rf"<!-- {name} -->\n```bash\n.+\n```", text)) == 1
