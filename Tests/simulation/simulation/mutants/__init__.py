"""Mutants: for every invariant at least one injected violation that the checker must report.

A mutant falsifies a reply, a file, a stored row or the ledger in the way a defect would.
`python -m simulation.mutants` prints the seed that kills each one.
"""

from . import corrections, damage, data, doubt, progress, session
from .injection import MUTANTS

__all__ = ["MUTANTS", "corrections", "damage", "data", "doubt", "progress", "session"]
