"""Attention residuals: one mix of a layer's sources, and the walk over a whole stack."""

#: its operators, and the suite that checks each; nothing here imports torch
OPERATORS = {"attn_res": "attnres"}
