"""The gated RMSNorm of KDA's output."""

#: its operators, and the suite that checks each; nothing here imports torch
OPERATORS = {"gated_rms_norm": "kda"}
