"""Runs AgentDojo and shows its table."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.evals import RULE_SETS, RuleSet, Score, open_bench, table

from .exits import Exit
from .screen import Screen
from .text import fit
from .text import table as lay_out


def run_agentdojo(suites: Sequence[str], rules: Sequence[str], tasks: Sequence[str], screen: Screen) -> Exit:
    """Run the suites, each with each set of rules; the progress goes to stderr."""
    scores: list[Score] = []
    for name in suites:
        kinds: list[RuleSet] = [kind for kind in RULE_SETS if rules.count(kind)]
        for kind in kinds:
            scores.append(open_bench(name, kind).score(tasks, screen.note))  # noqa: PERF401 -- it takes minutes
    for line in lay_out(table(scores), screen.width):
        screen.line(line)
    for score in scores:
        for pair in score.injected:
            screen.line(fit(f"an injected effect happened: {score.suite} {pair} ({score.rules} rules)", screen.width))
    screen.data([score.to_json() for score in scores])
    return Exit.ERROR if any(score.injected for score in scores) else Exit.DONE
