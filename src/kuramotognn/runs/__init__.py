"""One configuration over several splits: folders, checkpoints, provenance."""
