"""Slow, obvious implementations, in numpy and scipy only, that everything is checked against.

They are written from the mathematics, row by row and matrix by matrix, and share no code with the engine.
"""
