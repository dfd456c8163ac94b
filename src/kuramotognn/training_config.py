"""Settings of training. Importing this does not import torch."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Metric: TypeAlias = Literal["accuracy", "balanced-accuracy", "macro-f1", "roc-auc"]


class TrainingConfig(BaseModel):
    """How a model is trained."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: int = Field(200, ge=1, description="Passes over the training nodes, at most.")
    patience: int = Field(100, ge=1, description="Stop after this many epochs without a better validation result.")
    optimiser: Literal["adam", "adamw", "adamax", "adagrad", "rmsprop", "sgd"] = Field(
        "adam", description="Optimiser, with torch's defaults for what is not set here."
    )
    learning_rate: float = Field(0.01, gt=0, description="Step of the optimiser.")
    weight_decay: float = Field(0.0, ge=0, description="Weight decay of the optimiser.")
    affine_weight_decay: float | None = Field(
        None, ge=0, description="Weight decay of encoder and decoder, where it differs (as in GCNII's code)."
    )
    clip_norm: float | None = Field(
        None, gt=0, description="Scale gradients down to this norm; the authors' code uses 5, and deep flows need it."
    )
    schedule: Literal["constant", "cosine", "plateau"] = Field(
        "constant",
        description="Learning rate over the epochs: constant, falling to 0 as a cosine, or halved after 20 epochs "
        "without a lower validation loss.",
    )
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="Share of the target that all classes get alike.")
    consistency: float = Field(
        0.0,
        ge=0,
        description="Weight of the consistency term: squared distance of all nodes' class probabilities, under "
        "different dropout, to their sharpened mean.",
    )
    consistency_passes: int = Field(2, ge=2, description="Forward passes with different dropout that it compares.")
    consistency_temperature: float = Field(0.5, gt=0, le=1, description="Sharpening of the mean: powers of 1 / this.")
    consistency_ramp: int = Field(50, ge=0, description="Epochs over which its weight grows from 0.")
    metric: Metric = Field(
        "accuracy", description="What epochs are selected by, on validation nodes: for uneven classes not accuracy."
    )
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="Weigh each class in the loss by one over its share of the training nodes, or all alike."
    )
    batch: Literal["none", "clusters", "nodes"] = Field(
        "none",
        description="Step on subgraphs: none (the whole graph), clusters (METIS parts) or nodes (random parts).",
    )
    parts: int = Field(50, ge=1, lt=2**31, description="Parts that the nodes are divided into for batches.")
    parts_per_batch: int = Field(10, ge=1, description="Parts in a batch, drawn at random each epoch.")
    select_time: bool = Field(
        False, description="Choose the integration time on validation, by decoding along the trajectory."
    )
    time_candidates: int = Field(20, ge=1, description="How many times select-time tries.")
    time_reach: float = Field(
        1.0, ge=1, description="How far select-time looks, as a multiple of model.time; GRAND's code uses 3."
    )
    checkpoint_every: int = Field(20, ge=1, description="Epochs between checkpoints.")
