"""The ring, as it is drawn."""

from __future__ import annotations

EDGES = {
    ("__start__", "observe"),
    ("observe", "reason"),
    ("observe", "guard"),
    ("reason", "guard"),
    ("guard", "guard"),
    ("guard", "act"),
    ("guard", "observe"),
    ("guard", "reason"),
    ("guard", "__end__"),
    ("act", "observe"),
}
