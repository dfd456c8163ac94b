"""Settings that must stand before torch is loaded; imported first."""

import os

# libgomp reads this when torch loads it: idle threads sleep after some 20 µs. By default they spin for milliseconds, on
# the cores that the fused kernels need next (docs/performance.md). No effect where torch was imported before.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
