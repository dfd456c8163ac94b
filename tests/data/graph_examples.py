"""One small graph in every format that is recognised."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import scipy.io
import scipy.sparse
import torch
from torch_geometric.data import Data

NODES, FEATURES, SPLITS = 12, 3, 2
LABELS = np.arange(NODES) % 2
X = (np.arange(NODES * FEATURES).reshape(NODES, FEATURES) % 5 / 4).astype(np.float32)
PAIRS = np.array([(node, (node * 5 + 1) % NODES) for node in range(NODES)] + [(0, 7), (3, 9)], dtype=np.int32)
ROLES = (np.arange(NODES)[None] + np.arange(SPLITS)[:, None]) % 3
MASKS = {part: np.array(role == ROLES) for role, part in enumerate(("train", "val", "test"))}
"""``[splits, N]``; each node is in one part."""


def undirected_pairs() -> set[tuple[int, int]]:
    return {(int(i), int(j)) for pair in PAIRS for i, j in (pair, pair[::-1])}


def data() -> Data:
    masks = {f"{part}_mask": torch.from_numpy(mask.T.copy()) for part, mask in MASKS.items()}
    edges = torch.from_numpy(PAIRS.T.astype(np.int64).copy())
    return Data(x=torch.from_numpy(X), edge_index=edges, y=torch.from_numpy(LABELS), **masks)


def shchur(path: Path) -> None:
    ends = tuple(PAIRS.T)
    matrices = {"adj": scipy.sparse.csr_array((np.ones(len(PAIRS)), ends), (NODES, NODES))}
    matrices["attr"] = scipy.sparse.csr_array(X)
    arrays: dict[str, Any] = {"labels": LABELS}
    for name, matrix in matrices.items():
        arrays |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    # The published files name their nodes by pickled objects.
    np.savez(path, node_names=np.array(["a", None], dtype=object), **arrays, allow_pickle=True)


def heterophilous(path: Path) -> None:
    masks: dict[str, Any] = {f"{part}_masks": mask for part, mask in MASKS.items()}
    np.savez(path, node_features=X, node_labels=LABELS.astype(np.int32), edges=PAIRS, **masks)


def safetensors_file(path: Path) -> None:
    safetensors.torch.save_file(data().to_dict(), path)


def pickled_data(path: Path) -> None:
    torch.save(data(), path)


def saved_dict(path: Path) -> None:
    torch.save(data().to_dict(), path)


def facebook(path: Path) -> None:
    ends = tuple(PAIRS.T)
    adjacency = scipy.sparse.coo_array((np.ones(len(PAIRS)), ends), (NODES, NODES)).tocsc()
    info = np.stack([LABELS + 1, LABELS + 1, *(np.arange(NODES) % (k + 2) for k in range(5))], axis=1)
    info[-1, 1] = 0  # A student who does not say.
    content = {"A": ((adjacency + adjacency.T) > 0).astype(float), "local_info": info.astype(np.int32)}
    scipy.io.savemat(path, content, do_compression=True)


def dgl_nodes(path: Path) -> None:
    rows = ["node_id,label,train_mask,val_mask,test_mask,feat"]
    for node in range(NODES):
        masks = ",".join(str(bool(MASKS[part][0, node])) for part in MASKS)
        rows.append(f'{node},{LABELS[node]},{masks},"{", ".join(map(str, X[node].tolist()))}"')
    path.write_text("\n".join(rows) + "\n")
    edges = ["src_id,dst_id,kind", *(f"{i},{j},x" for i, j in PAIRS)]
    (path.parent / "edges.csv").write_text("\n".join(edges) + "\n")


WHOLE: dict[str, Callable[[Path], None]] = {
    "shchur.npz": shchur,
    "heterophilous.npz": heterophilous,
    "data.safetensors": safetensors_file,
    "data.pt": pickled_data,
    "dict.pt": saved_dict,
    "nodes.csv": dgl_nodes,
    "facebook.mat": facebook,
}
"""Writers of files that hold (or lie beside) everything."""


def edge_lists() -> dict[str, bytes]:
    """The edges as text, by the file's name."""
    tabs, blanks = ("\n".join(f"{i}{blank}{j}" for i, j in PAIRS) + "\n" for blank in ("\t", "  "))
    snap = f"# Directed graph\n# FromNodeId\tToNodeId\n{tabs}"
    market = f"%%MatrixMarket matrix coordinate pattern general\n% made up\n{NODES} {NODES} {len(PAIRS)}\n{blanks}"
    return {
        "snap.txt": snap.encode(),
        "snap.txt.gz": gzip.compress(snap.encode()),
        "konect.txt": f"% asym unweighted\n{blanks}".encode(),
        "plain.txt": blanks.encode(),
        "plain.csv": tabs.replace("\t", ",").encode(),
        "commented.csv": f"# by hand\nfrom,to\n{tabs}".replace("\t", ",").encode(),
        "market.mtx": market.encode(),
    }
