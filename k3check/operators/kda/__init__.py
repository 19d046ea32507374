"""Kimi Delta Attention: step, token recurrence, chunkwise prefill, and their gate."""
