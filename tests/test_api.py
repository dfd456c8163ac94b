import subprocess
import sys

import kuramotognn

PUBLIC = """
    __version__ load_dataset read_nodes_edges read_graphml from_networkx from_scipy from_data NodeDataset DataError
    random_per_class fraction k_fold Split normalise_features SparseFeatures largest_component
    Graph set_backend use_backend backend_in_use Field Dynamics Attention RandomWalk SymmetricWalk SignedAttention
    Kuramoto KuramotoDynamics ResidualKuramoto SecondOrderKuramoto TimeVaryingKuramoto Sakaguchi DelayedKuramoto
    AdaptiveKuramoto DampedOscillators Diffusion DiffusionDynamics Solver integrate Solution SolverError
    ContinuousGNN KuramotoConv KuramotoGNN ResidualKuramotoGNN SecondOrderKuramotoGNN TimeVaryingKuramotoGNN
    SakaguchiGNN DelayedKuramotoGNN AdaptiveKuramotoGNN SignedKuramotoGNN GraphCON GRAND GCN GAT
    GraphSAGE GCNII ModelSettings ModelInfo MODELS
    TrainingConfig fit EpochMetrics TrainResult predict
    oversmoothing_profile Profile is_oversmoothing Decay
"""


def test_public_names_are_chosen_on_purpose() -> None:
    assert kuramotognn.__all__ == PUBLIC.split()
    for name in kuramotognn.__all__:
        assert hasattr(kuramotognn, name)


def test_imports_point_one_way() -> None:
    """The library can be used without its command line or experiments being loaded."""
    code = "import sys, kuramotognn; print([m for m in sys.modules if m.startswith(('kuramotognn.cli', 'cyclopts'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
