"""The type of the simulator's arrays: NumPy, since it needs no gradients."""

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
