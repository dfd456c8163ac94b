import kuramotognn

PUBLIC = """
    load_dataset read_nodes_edges read_graphml from_networkx from_scipy from_data NodeDataset DataError
    random_per_class fraction k_fold Split normalise_features SparseFeatures MappedFeatures open_features
    largest_component
    Graph set_backend use_backend backend_in_use Field Dynamics CoupledDynamics Couplings Equation PhaseField
    Attention RandomWalk SymmetricWalk SignedAttention Kuramoto ResidualKuramoto SecondOrderKuramoto Sakaguchi
    DelayedKuramoto AdaptiveKuramoto DampedOscillators Diffusion Solver integrate Solution SolverError
    ContinuousGNN KuramotoConv KuramotoGNN GraphCON GRAND GCN GAT GraphSAGE GCNII ModelInfo MODELS
    TrainingConfig fit EpochMetrics TrainResult predict oversmoothing_profile Profile is_oversmoothing Decay __version__
    load_pretrained Pretrained distribute
"""


def test_public_names_are_chosen_on_purpose() -> None:
    assert sorted(kuramotognn.__all__) == sorted(PUBLIC.split())
    for name in kuramotognn.__all__:
        assert hasattr(kuramotognn, name)
