"""A name for NumPy arrays: phases of ten million oscillators are no tensors that gradients flow through."""

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
