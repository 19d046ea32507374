"""Distances, baselines and verdicts: how an output is judged.

``metrics`` measures, ``verdict`` decides, ``profile`` says what the deviation looks like.
"""
