"""What is secret stays out of the database, and out of what is shown."""

from __future__ import annotations

import secrets
from pathlib import Path

from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from tests.world.plans import planned

from loopwright import Retry, SyncRuns, allow, create_agent, open_checkpoints, tool
from loopwright.testing import call


def written(folder: Path) -> bytes:
    """Return all bytes of the database and of the files beside it."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def test_a_models_key_is_nowhere(tmp_path: Path) -> None:
    """Neither in a file nor in the error of a model that cannot be reached."""
    key = secrets.token_hex(20)
    model = ChatOpenAI(model="gpt-5-mini", api_key=SecretStr(key), base_url="http://127.0.0.1:9/v1", max_retries=0)
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        result = SyncRuns(create_agent(model, [], retry=Retry(tries=1)), checkpoints).run("Do it.", thread_id="t")
        assert ("failed", "error") == (result.status, result.stop_reason)
        assert result.error
        assert key not in repr(result)
        assert key.encode() not in written(tmp_path)


def test_what_a_tool_holds_is_nowhere(tmp_path: Path) -> None:
    """A tool keeps its own secret: the run stores the call and its result, and nothing that is behind them."""
    token = SecretStr(secrets.token_hex(20))

    @tool(effect="write")
    def log_in(user: str) -> str:
        """Log a user in at the shop's service."""
        return f"{user}: {len(token.get_secret_value())} characters, {token}"

    agent = create_agent(planned([call("log_in", user="ana"), "Done."]), [log_in], permissions=[allow("log_in")])
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        result = SyncRuns(agent, checkpoints).run("Do it.", thread_id="t")
        assert "ana: 40 characters, **********" == result.trail[0]["observation"]
        assert token.get_secret_value().encode() not in written(tmp_path)


def test_bad_arguments_are_explained_without_their_values(tmp_path: Path) -> None:
    """What did not fit can be long, or secret: the explanation names the field alone."""
    word = secrets.token_hex(20)

    @tool(effect="write")
    def pay(amount: int) -> str:
        """Pay an amount to the customer."""
        return str(amount)

    agent = create_agent(planned([call("pay", amount=word), "Done."]), [pay])
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        result = SyncRuns(agent, checkpoints).run("Do it.", thread_id="t")
    assert "amount" in result.trail[0]["observation"]
    assert word not in result.trail[0]["observation"]
