"""Draws `research.svg`: what a terminal shows of a research. `python docs/images/draw.py` draws it anew.

The run is a real one, of the command line in a terminal of its own. Over HTTP it asks a search engine, a page, and a
model that says what stands below; all three are on this machine, as the addresses say. A test holds the picture to what
the command line prints.
"""

# ruff: noqa: INP001 -- a program, no part of a package
from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from loopwright.testing import OpenAIServer, call

PICTURE = Path(__file__).with_name("research.svg")
COLUMNS = 108
COMMAND = ("run", "--agent", "loopwright.graphs.research:agent", "How tall is the Eiffel Tower, in feet?")
PAGE = "<title>The Eiffel Tower</title><p>Built for the World's Fair of 1889, it is 330 m tall.</p>"
_FORMAT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own, without fonts from elsewhere."""
_BY_CHANCE = re.compile(r"(?<=127\.0\.0\.1:)\d+|(?<=run )[0-9a-f]{6}\b|(?<=thread )[0-9a-f]{12}\b|(?<=tool calls, ).*")
"""Ports, the names of a run and its thread, and what it cost, which is counted by the letters."""


class _Pages(BaseHTTPRequestHandler):
    """A search engine with one hit, and its page."""

    def do_GET(self) -> None:
        """Answer a search, or with the page."""
        hit = {"title": "The Eiffel Tower", "url": f"http://{self.headers['Host']}/tower", "content": "How tall it is."}
        is_search = self.path.startswith("/search")
        body = (json.dumps({"results": [hit]}) if is_search else PAGE).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if is_search else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the standard library's signature
        """Say nothing."""


@contextmanager
def world() -> Generator[dict[str, str]]:
    """Serve engine, page and model; yields the settings that lead the command line there."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{pages.server_port}"
        search, read = call("web_search", query="height of the Eiffel Tower"), call("read_url", url=f"{here}/tower")
        answer = f"The Eiffel Tower is 330 m, about 1,083 feet, tall.\nSources: {here}/tower"
        with OpenAIServer([search, read, call("calculator", expression="330 / 0.3048"), answer]) as model:
            yield {
                "OPENAI_API_KEY": "none",
                "OPENAI_BASE_URL": model.base_url,
                "LOOPWRIGHT_SEARCH": f"{here}/search",
                "LOOPWRIGHT_PRIVATE": "127.0.0.1",
                "COLUMNS": str(COLUMNS),
            }
        pages.shutdown()


def run() -> str:
    """Return what the command line shows in a terminal, styles included."""
    import pty  # not on Windows

    with world() as settings, tempfile.TemporaryDirectory() as folder:
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(folder)
            command = [sys.executable, "-m", "loopwright.cli", *COMMAND]
            os.execve(sys.executable, command, {**os.environ, **settings})  # noqa: S606 -- no shell is wanted
        shown = b"".join(iter(lambda: _read(terminal), b""))
        os.waitpid(child, 0)
    return shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # as Linux says that the other side has gone
        return b""


def draw(shown: str) -> str:
    """Return the picture of what a terminal showed; needs the package rich."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(shown))
    return console.export_svg(title="loopwright " + " ".join(COMMAND), code_format=_FORMAT, unique_id="research")


def lines_in(picture: str) -> list[str]:
    """Return the lines of a picture that are not empty."""
    rows: dict[float, str] = defaultdict(str)
    for text in ET.fromstring(picture).iterfind(".//{*}g/{*}g/{*}text"):  # noqa: S314 -- drawn here
        rows[float(text.attrib["y"])] += text.text or ""
    return comparable([rows[y].replace("\N{NO-BREAK SPACE}", " ") for y in sorted(rows)])


def comparable(lines: Sequence[str]) -> list[str]:
    """Return the lines that are not empty, without what is another one each time."""
    return [_BY_CHANCE.sub("…", line.rstrip()) for line in lines if line.strip()]


if __name__ == "__main__":
    PICTURE.write_text(draw(run()), encoding="utf-8")
