"""Make what studies found the recommended settings: `python tools/recommend.py BEST_TOML...`.

The files are those that `kuramotognn tune` writes as STUDY/best.toml and `make tune-all` keeps in results/tuning. What
differs from the defaults is written to src/kuramotognn/config/recommended/DATASET/MODEL.toml, with how it was found.
"""

import sys
from pathlib import Path

import tomli_w

from kuramotognn.atomic_write import write_atomically
from kuramotognn.config.resolve import flatten, nest, read_toml, resolve

FOLDER = Path(__file__).parent.parent / "src" / "kuramotognn" / "config" / "recommended"


def adopt(path: Path) -> Path:
    """Write the settings of a study's winner; where to."""
    found = resolve({}, read_toml(path)).config
    dataset, model = found.dataset, found.model.name
    plain = resolve({}, {"dataset": dataset, "recommended": False, "model": {"name": model}}).config
    defaults = dict(flatten(plain.model_dump(mode="json")))
    settings = {
        name: value for name, value in flatten(found.model_dump(mode="json")) if value != defaults.get(name, value)
    }
    story = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    target = FOLDER / dataset / f"{model}.toml"
    target.parent.mkdir(exist_ok=True)
    write_atomically(target, "\n".join([*story, "", tomli_w.dumps(nest(settings))]))
    read = resolve({"dataset": dataset, "model": {"name": model}}).config
    assert read == found, f"{target} does not say all of {path}"
    return target


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        print(adopt(Path(folder)).relative_to(FOLDER))
