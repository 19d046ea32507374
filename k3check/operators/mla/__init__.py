"""Gated multi-head latent attention without rotary positions."""

#: its operators, and the suite that checks each; nothing here imports torch
OPERATORS = {"gated_mla": "mla"}
