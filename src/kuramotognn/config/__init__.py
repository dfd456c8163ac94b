"""Settings: one typed tree, where its values come from, and where to search for better ones."""

from kuramotognn.config.resolve import ConfigError, Resolved, parse, resolve
from kuramotognn.config.tree import Config, DataConfig

__all__ = ["Config", "ConfigError", "DataConfig", "Resolved", "parse", "resolve"]
