"""Protocols: how nodes are divided into training, validation and test nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

Protocol: TypeAlias = Literal[
    "random-per-class", "planetoid-public", "geom-gcn", "heterophilous", "ogb-time", "fraction", "k-fold", "own-split"
]


@dataclass(frozen=True)
class ProtocolInfo:
    """A protocol.

    Attributes:
        drawn: whether splits are drawn from the labels by number; such a protocol works for every data set.
        splits: number of splits that are reported.
    """

    drawn: bool
    splits: int


PROTOCOLS: Mapping[Protocol, ProtocolInfo] = MappingProxyType(
    {
        "random-per-class": ProtocolInfo(drawn=True, splits=100),
        "planetoid-public": ProtocolInfo(drawn=False, splits=1),
        "geom-gcn": ProtocolInfo(drawn=False, splits=10),
        "heterophilous": ProtocolInfo(drawn=False, splits=10),
        "ogb-time": ProtocolInfo(drawn=False, splits=1),
        "fraction": ProtocolInfo(drawn=True, splits=100),
        "k-fold": ProtocolInfo(drawn=True, splits=100),
        "own-split": ProtocolInfo(drawn=False, splits=1),
    }
)
DRAWN: tuple[Protocol, ...] = tuple(name for name, info in PROTOCOLS.items() if info.drawn)
