"""How callables take and return routing, activation and layer; a file a form.

A file has tuples named after the operator that the callable is: ``ROUTER``, ``SITU``, ``LATENT``.
"""

from __future__ import annotations

import sys

from k3check.nouns.convention import collect

_HERE = sys.modules[__name__]
ROUTER = collect(_HERE, "ROUTER")
SITU = collect(_HERE, "SITU")
LATENT = collect(_HERE, "LATENT")
