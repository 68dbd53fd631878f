"""What the commands about what is kept say, and end with."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwright.cli.exits import Exit
from loopwright.cli.keeping import reseal_all, show_log
from loopwright.cli.loading import open_store
from loopwright.cli.screen import Screen

OLD, NEW = (b"o" * 32).hex(), (b"n" * 32).hex()


def test_resealing_says_whether_the_old_key_can_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 and each row, while one still needs it; then the new one alone reads the log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPWRIGHT_ENCRYPTION", OLD)
    with open_store(create=True) as store:
        store.ledger.runs.begin("r", thread_id="t", agent="", task="the-task")
    for keys, code, told in (
        (NEW, Exit.ERROR, "0 rows sealed anew with the first key in .loopwright/runs.db; 2 rows still need"),
        (f"{NEW},{OLD}", Exit.DONE, "2 rows sealed anew with the first key in .loopwright/runs.db; none"),
        (NEW, Exit.DONE, "0 rows sealed anew with the first key in .loopwright/runs.db; none needs another"),
    ):
        monkeypatch.setenv("LOOPWRIGHT_ENCRYPTION", keys)
        assert code is reseal_all(Screen())
        said = capsys.readouterr().out
        assert told in said
        assert ("run (id 'r'): a stored value was encrypted with a key that was not given" in said) == bool(code)
    show_log(None, Screen())
    assert "the-task" in capsys.readouterr().out
