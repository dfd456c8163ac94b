"""Coupled systems: one right-hand side, and whole integrations with fixed steps."""
