"""The layout: each room at the top of the repository has its link, and every file its place in the wheel."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "loopwright"


@pytest.fixture(name="settings", scope="module")
def settings_fixture() -> dict[str, Any]:
    """The tables of `pyproject.toml`."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(name="dist", scope="module")
def dist_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `tree/` (the wheel from the checkout) and `sdist/` (the sdist, and the wheel made from it)."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", str(ROOT)]
    for target, options in (("tree", ["--wheel"]), ("sdist", [])):
        command = [*build, *options, "--outdir", str(folder / target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_rooms_at_the_top_are_the_linked_ones() -> None:
    """A folder with code of the package at the top has a link of its name, and a link leads nowhere else."""
    links = {path.name: path.readlink() for path in PACKAGE.iterdir() if path.is_symlink()}
    expected = {path.parent.name: Path("../..") / path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert expected == links
    assert expected


def test_settings_name_every_room(settings: dict[str, Any]) -> None:
    """A room that one list forgets would be missing from a wheel, or go unchecked."""
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_symlink()}
    links = {f"src/loopwright/{room}" for room in rooms}
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    sdist = settings["tool"]["hatch"]["build"]["targets"]["sdist"]

    assert {"src/loopwright"} | rooms == set(wheel["only-include"])
    assert {"src/loopwright", "examples", "tests"} | rooms == set(sdist["only-include"])
    assert links == set(wheel["exclude"]) == set(sdist["exclude"])
    assert {"src/loopwright": "loopwright"} | {room: f"loopwright/{room}" for room in rooms} == wheel["sources"]
    assert {"src/loopwright"} | links <= set(settings["tool"]["pyright"]["include"])


def test_wheel_holds_the_package_and_nothing_else(dist: Path) -> None:
    """Every file below `src/loopwright`, links followed, is in the wheel once, `py.typed` too; no test is."""
    names = _wheel(dist / "tree").namelist()
    held = [name for name in names if ".dist-info/" not in name]
    assert sorted(f"loopwright/{path}" for path in _package_files()) == sorted(held)
    assert "loopwright/py.typed" in held


def test_wheel_carries_the_licence_and_the_command(dist: Path) -> None:
    """Who installs the wheel gets the licence's text and the `loopwright` command."""
    wheel = _wheel(dist / "tree")
    names = {Path(name).name: name for name in wheel.namelist() if ".dist-info/" in name}
    assert wheel.read(names["LICENSE"]) == (ROOT / "LICENSE").read_bytes()
    assert b"loopwright = loopwright.cli:main" in wheel.read(names["entry_points.txt"])


def test_wheel_from_the_sdist_is_the_wheel_from_the_tree(dist: Path) -> None:
    """Whoever builds from the sdist, where there are no links, gets the same wheel to the byte."""
    assert _contents(_wheel(dist / "tree")) == _contents(_wheel(dist / "sdist"))


def test_sdist_holds_each_file_once(dist: Path) -> None:
    """The sdist has the rooms under their own names only, and the tests."""
    (path,) = (dist / "sdist").glob("*.tar.gz")
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    names = {member.name.partition("/")[2] for member in members}
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_symlink()}
    assert [] == [member.name for member in members if member.issym()]
    assert [] == [name for name in names for room in rooms if name.startswith(f"src/loopwright/{room}/")]
    assert {f"{room}/__init__.py" for room in rooms} | {"tests/test_packaging.py"} <= names


def _package_files() -> list[str]:
    return [
        path.relative_to(PACKAGE).as_posix()
        for folder in (PACKAGE, *(link for link in PACKAGE.iterdir() if link.is_symlink()))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ]


def _wheel(folder: Path) -> zipfile.ZipFile:
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def _contents(wheel: zipfile.ZipFile) -> dict[str, bytes]:
    return {name: wheel.read(name) for name in wheel.namelist()}
