"""How callables take and return the tensors of the short convolution; a file a form.

A file has a tuple ``CONVENTIONS``.
"""

from __future__ import annotations

import sys

from k3check.nouns.convention import collect

CONVENTIONS = collect(sys.modules[__name__], "CONVENTIONS")
