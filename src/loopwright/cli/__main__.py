"""`python -m loopwright.cli`."""

from __future__ import annotations

from . import main

main()
