"""A page, and a moving picture, that play the flow of trained models."""
