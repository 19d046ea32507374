"""Attention residuals: one mix of a layer's sources, and the walk over a whole stack."""
