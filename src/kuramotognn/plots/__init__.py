"""Every picture of the library, in one style."""
