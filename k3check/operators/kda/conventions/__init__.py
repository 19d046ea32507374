"""How callables of the field take and return KDA's tensors: one file per library.

Each convention turns canonical inputs (see ``reference.evaluate``) into one library's call and its
result back. What the callable does itself (activation, norm, scale) follows from its parameters
and from the options that the user passes on.

Adding a library is adding a file with a tuple ``CONVENTIONS``; a convention that takes exactly one
token stands in ``STEPS_ONLY`` instead, one that takes no single token in ``SEQUENCES_ONLY``.
"""

from __future__ import annotations

import sys

from k3check.nouns.convention import collect
from k3check.operators.kda.conventions.article import ARTICLE_STEP
from k3check.operators.kda.conventions.fla import FLA
from k3check.operators.kda.conventions.ours import ACTIVATED, K3CHECK

#: Listed first, in this order; then every other one by name.
FIRST = ("k3check", "k3check-activated", "fla")


_HERE = sys.modules[__name__]
SEQUENCE_CONVENTIONS = collect(_HERE, "CONVENTIONS", "SEQUENCES_ONLY", first=FIRST)
STEP_CONVENTIONS = collect(_HERE, "CONVENTIONS", "STEPS_ONLY", first=FIRST)

__all__ = (
    "ACTIVATED",
    "ARTICLE_STEP",
    "FLA",
    "K3CHECK",
    "SEQUENCE_CONVENTIONS",
    "STEP_CONVENTIONS",
)
