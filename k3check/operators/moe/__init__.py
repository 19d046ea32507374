"""The mixture of experts: router, activation, and the latent layer around them."""

#: its operators, and the suite that checks each; nothing here imports torch
OPERATORS = {"moe_router": "moe", "situ_glu": "moe", "latent_moe": "moe"}
