"""Simulation of the Kuramoto model: one to ten million oscillators, coupled all to all or by a network."""

from kuramotognn.simulate.model import Oscillators
from kuramotognn.simulate.natural_frequencies import Frequencies, critical_coupling, stationary_order
from kuramotognn.simulate.networks import as_network, random_network, read_network, small_world
from kuramotognn.simulate.result import Simulation
from kuramotognn.simulate.simulation import simulate
from kuramotognn.simulate.transition import Transition, transition

__all__ = [
    "Frequencies",
    "Oscillators",
    "Simulation",
    "Transition",
    "as_network",
    "critical_coupling",
    "random_network",
    "read_network",
    "simulate",
    "small_world",
    "stationary_order",
    "transition",
]
