"""An equation of one's own: `kuramotognn train --model examples/own_equation.py:SecondHarmonic --model.second 0.3`."""

import torch
from torch import Tensor

from kuramotognn import CoupledDynamics, Couplings, Equation
from kuramotognn.fields import Velocity


class SecondHarmonic(Equation):
    """dx_i/dt = ω_i + K Σ_j a_ij (sin(x_j − x_i) + h sin 2(x_j − x_i)).

    Args:
        second: strength ``h`` of the second harmonic.
    """

    def __init__(self, second: float = 0.5) -> None:
        super().__init__()
        self.second = second

    def forward(self, omega: Tensor, couplings: Couplings, strength: float) -> Velocity:
        sines = CoupledDynamics(couplings, torch.zeros_like(omega), strength)
        return lambda t, x: omega + sines(t, x) + self.second * sines(t, 2 * x)
