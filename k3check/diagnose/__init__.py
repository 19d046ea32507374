"""Naming the mistake: which known fault produces what a failing operator returned."""
