"""The demo keeps its promise, and says so only if the databases do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal

from loopwright.cli.demo_processes import clean_environment, run_together, run_watched


@pytest.mark.timeout(120)
def test_the_demo_pays_once_and_the_bare_graph_twice(terminal: Terminal) -> None:
    """In less than a minute: two processes approve together, one is killed; one refund, and two on the bare graph.

    A program reads the figures from stdout; people read the story on stderr, and nothing is left behind.
    """
    ended = terminal.start_fresh("demo", "--json", COLUMNS="80")
    told, story = ended.data, ended.err.splitlines()
    assert (0, True) == (ended.code, told["as_promised"])
    assert ({"refunds": 2, "paid": 80000}, 1) == (told["bare_langgraph"], told["loopwright"]["refunds"])
    assert told["loopwright"]["approved_by"] in {"ana", "ben"}
    assert told["seconds"] < 60
    assert ["loopwright", "1", "40000"] in [line.split() for line in story]
    assert ["bare", "LangGraph", "2", "80000"] in [line.split() for line in story]
    assert 2 == ended.err.count("KILLED by SIGKILL")
    assert f"was already approved by {told['loopwright']['approved_by']}" in ended.err
    assert [] == [line for line in story if len(line) > 80]
    assert [] == list(terminal.folder.iterdir())


ECHO = "import sys\nprint('ready', flush=True)\nsys.stdin.read()\nprint(sys.argv[1])"


def test_processes_are_let_go_together(tmp_path: Path) -> None:
    """Each waits until all are ready; what each one wrote is told apart."""
    (tmp_path / "echo_after.py").write_text(ECHO)
    ended = run_together("echo_after", [["a"], ["b"]], folder=tmp_path, environment=clean_environment())
    assert [(0, ["a"]), (0, ["b"])] == [(each.code, each.lines) for each in ended]


def test_a_process_is_watched_while_it_runs(tmp_path: Path) -> None:
    """Each line is handed on, stderr included, and the exit code is kept."""
    (tmp_path / "fails.py").write_text("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)")
    seen: list[str] = []
    environment = clean_environment(PYTHONUNBUFFERED="1")
    ended = run_watched("fails", [], folder=tmp_path, environment=environment, watch=seen.append)
    assert (3, ["out", "err"], ["out", "err"]) == (ended.code, ended.lines, seen)


def test_a_users_settings_do_not_reach_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no tracing, no database of the user's: the demo is offline and leaves nothing behind."""
    for name in ("OPENAI_API_KEY", "LANGSMITH_API_KEY", "LOOPWRIGHT_CHECKPOINTS", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "set")
    (tmp_path / "env.py").write_text("import json, os\nprint(json.dumps(dict(os.environ)))")
    ended = run_watched("env", [], folder=tmp_path, environment=clean_environment(MINE="1"), watch=print)
    found = json.loads(ended.lines[0])
    assert [] == [name for name, value in found.items() if value == "set"]
    assert ("1", "false", sys.platform) == (found["MINE"], found["LANGSMITH_TRACING"], sys.platform)
