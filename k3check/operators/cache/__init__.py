"""Resuming from a prefix cache: KDA state, convolution state and MLA cache restored together."""

#: it has no operator of its own, only checks of others together
SUITES = ("cache",)
