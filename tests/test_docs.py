"""What the documents show is true: examples run, and links lead somewhere."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import loopwright

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def _modules() -> list[str]:
    found = pkgutil.walk_packages(loopwright.__path__, "loopwright.")
    return ["loopwright", *(module.name for module in found if not module.name.endswith("__main__"))]


def _programs() -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", _modules())
def test_examples_in_docstrings_do_what_they_say(name: str) -> None:
    """Each `>>>` line of the package gives the output below it."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("program", _programs())
def test_each_program_of_the_readme_runs_as_it_stands(program: str, tmp_path: Path) -> None:
    """A reader can paste a Python block of the README into an empty folder and run it, offline and without a key."""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_files_lead_somewhere(page: Path) -> None:
    """No page points to a file that was moved."""
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [] == [target for target in targets if "://" not in target and not (page.parent / target).exists()]


def test_the_picture_in_the_readme_is_the_graph() -> None:
    """The README's mermaid block is what LangGraph draws of the ring, to the letter."""
    from loopwright.graphs.support import agent

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```mermaid\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert [agent.get_graph().draw_mermaid().strip()] == [text.strip() for text in shown]
