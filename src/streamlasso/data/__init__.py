"""Rows from anywhere, and their cells as features."""
