"""The short causal convolution in front of KDA's query, key and value."""

#: its operators, and the suite that checks each; nothing here imports torch
OPERATORS = {"short_conv": "kda"}
