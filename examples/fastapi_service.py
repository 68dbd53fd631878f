"""A service around an agent: one request starts a run, another one, perhaps days later, decides what it asks.

    pip install 'loopwright[serve]'
    uvicorn --app-dir examples fastapi_service:app

Runs and questions are kept in the database that `LOOPWRIGHT_CHECKPOINTS` names. Stop the service, or kill it, whenever
you like. docs/embedding.md goes through it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from loopwright import Approval, Receipt, Run, Runs, RunStatus, StopReason, aopen_checkpoints
from loopwright.errors import ApprovalNotFound, ConfigurationError, InvalidDecision, RunNotFound
from loopwright.graphs.support import agent

REFERENCE = "loopwright.graphs.support:agent"
"""Kept with each run, so that `loopwright approve` and the like find the agent too."""
RECOVER_SECONDS = float(os.environ.get("RECOVER_SECONDS", "30"))
"""How often this process looks for what others have left."""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Open the database, carry on what an earlier process left, and let what is under way come to rest at the end."""
    checkpoints = await aopen_checkpoints(os.environ.get("LOOPWRIGHT_CHECKPOINTS", "sqlite:///runs.db"))
    async with checkpoints, Runs(agent, checkpoints, reference=REFERENCE) as runs:
        app.state.runs = runs
        async with runs.recovering(every=RECOVER_SECONDS):
            yield


def the_runs(request: Request) -> Runs:
    """Hand the service's one `Runs` to each request."""
    runs: Runs = request.app.state.runs
    return runs


TheRuns = Annotated[Runs, Depends(the_runs)]
app = FastAPI(title="Order support", lifespan=lifespan)


class Task(BaseModel):
    """What is to be done, in the user's words, and in which conversation."""

    message: str
    thread_id: str


class Decision(BaseModel):
    """What a person decided: `{"type": "approve"}`, `edit` with `args`, `reject` or `respond` with a `message`."""

    decision: dict[str, Any]
    # This example believes whoever calls it. In a service of yours the name comes from the authenticated user.
    by: str


class Standing(BaseModel):
    """How a run stands."""

    id: str
    status: RunStatus
    stop_reason: StopReason | None
    answer: str
    error: str
    tokens: int
    approvals: list[Approval]


@app.post("/runs", status_code=202)
async def start(task: Task, runs: TheRuns, idempotency_key: Annotated[str, Header(max_length=200)] = "") -> Run:
    """Start a run; sent again with the same Idempotency-Key, it is the same run."""
    return await runs.start(task.message, thread_id=task.thread_id, run_id=idempotency_key)


@app.get("/runs/{run_id}")
async def stand(run_id: str, runs: TheRuns) -> Standing:
    """Tell how a run stands."""
    result = await runs.get(run_id)
    return Standing(
        id=run_id,
        status=result.status,
        stop_reason=result.stop_reason,
        answer=result.answer,
        error=result.error,
        tokens=result.usage.tokens,
        approvals=[*result.approvals],
    )


@app.get("/approvals")
async def inbox(runs: TheRuns) -> list[Approval]:
    """List what waits for a person, oldest first."""
    return [*await runs.approvals()]


@app.post("/approvals/{approval_id}")
async def decide(approval_id: str, decided: Decision, runs: TheRuns) -> Receipt:
    """Decide; the first decision counts, and whoever comes later is told who made it and when."""
    return await runs.decide(approval_id, decided.decision, by=decided.by)


async def refuse(_request: Request, error: Exception) -> JSONResponse:
    """Say what was wrong with a request, in the one line that the error has for it."""
    return JSONResponse({"error": str(error)}, 404 if isinstance(error, RunNotFound | ApprovalNotFound) else 422)


for refused in (RunNotFound, ApprovalNotFound, InvalidDecision, ConfigurationError):
    app.add_exception_handler(refused, refuse)
