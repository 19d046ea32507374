"""MXFP4: four-bit weights in groups of 32 with a power-of-two scale, as the experts have them."""

#: its operators, and the suite that checks each; nothing here imports torch
OPERATORS = {"mxfp4_dequant": "mxfp4"}
