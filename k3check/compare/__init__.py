"""Distances, what rounding may cost, and whether two results agree: how an output is judged.

``distance`` measures, ``allowance`` says what rounding may cost (``orders``: in any order of
summation), ``agree`` compares the two, ``verdict`` goes from outputs to an outcome, ``twice`` does
so for two results of one candidate, and ``profile`` says what the deviation looks like.
"""
