"""Kimi Delta Attention: step, token recurrence, chunkwise prefill, and their gate."""

#: its operators, and the suite that checks each; nothing here imports torch
OPERATORS = {"kda_step": "kda", "kda_gate": "kda", "kda_recurrent": "kda", "kda_chunk": "flashkda"}
