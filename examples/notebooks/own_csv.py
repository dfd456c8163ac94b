# %% [markdown]
# # From your CSV to predictions
#
# A table of nodes, a table of edges, and a column to predict. The command line checks the files, trains, and writes a table
# of predictions. Here the tables are made from the embedded Cora; put your own in their place.

# %%
import numpy as np
import polars as pl
import scipy.sparse
import torch

from kuramotognn import KuramotoGNN, TrainingConfig, fit, fraction, load_dataset, read_nodes_edges
from kuramotognn.cli import main

cora = load_dataset("cora").largest_component()
ids = [f"p{number}" for number in range(cora.num_nodes)]
known = np.random.default_rng(0).random(cora.num_nodes) < 0.7
topics = [cora.class_names[label] for label in cora.y.tolist()]
words = scipy.sparse.csr_matrix(cora.x.to_dense().numpy())

papers = pl.DataFrame({"paper_id": ids, "topic": np.where(known, topics, None)}, schema={"paper_id": str, "topic": str})
papers.write_csv("papers.csv")
citing, cited = ([ids[node] for node in ends] for ends in cora.edge_index.tolist())
pl.DataFrame({"citing": citing, "cited": cited}).write_csv("cites.csv")
scipy.sparse.save_npz("words.npz", words)
papers.head(3)

# %% [markdown]
# ## On the command line
#
# `main([...])` is the command `kuramotognn`, called from Python. In a shell the next line reads
#
#     kuramotognn check --nodes papers.csv --edges cites.csv --label topic --id paper_id --features words.npz
#
# It says how the files are understood, before anything is trained.

# %%
files = "--nodes papers.csv --edges cites.csv --label topic --id paper_id --features words.npz".split()
assert main(["check", *files]) == 0

# %% [markdown]
# Train on one split: 60 % of the labelled papers train, 20 % select the epoch, 20 % test. Without `--model.time` the
# integration time would be chosen on validation nodes, too.

# %%
assert main(["train", *files, *"--splits 1 --model.time 4 --training.epochs 60 --out run --quiet".split()]) == 0

# %% [markdown]
# Predict the papers without a topic, and everything else. The table has the probability of each class.

# %%
assert main(["predict", "run", "--out", "predictions.csv"]) == 0
predictions = pl.read_csv("predictions.csv")
predictions.head(3)

# %% [markdown]
# Here we know the topics that were left out, so we can count:

# %%
hidden = pl.DataFrame({"node": ids, "topic": topics}).filter(~known).join(predictions, on="node")
right = (hidden["topic"] == hidden["prediction"]).mean()
print(f"{100 * right:.1f} % of {len(hidden)} papers without a topic")

# %% [markdown]
# ## The same in Python

# %%
torch.manual_seed(0)
mine = read_nodes_edges("papers.csv", "cites.csv", label="topic", id="paper_id", features="words.npz")
split = fraction(mine.y, seed=0)
model = KuramotoGNN(mine.num_features, 32, mine.num_classes, time=4.0)
result = fit(model, mine.x, mine.edge_index, mine.y, split, config=TrainingConfig(epochs=60, weight_decay=0.01))
print(f"test accuracy {100 * result.test_accuracy:.1f} %")
