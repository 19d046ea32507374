"""Checks that need no reference, the same for every operator."""
