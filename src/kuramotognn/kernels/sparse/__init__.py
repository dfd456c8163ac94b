"""Products of a sparse matrix whose values change and whose pattern stays."""
