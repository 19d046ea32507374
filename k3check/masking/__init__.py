"""Secrets, once: what is one, where it may stand, how it may be written, and its mask.

Everything that is shown passes here. :class:`Masker` replaces the secrets of a run wherever they
are written, in whatever spelling; :mod:`~k3check.masking.settings` masks a configuration's values
by their keys' names; :mod:`~k3check.masking.address` finds keys that were written into addresses.
"""

from k3check.masking.masker import MASK, SHORTEST, Masker

__all__ = ["MASK", "SHORTEST", "Masker"]
