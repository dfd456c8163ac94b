"""Measurements: parity first, then time. ``make bench`` runs them all."""
