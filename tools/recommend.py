"""Make what studies found the recommended settings, or a preset: `python tools/recommend.py BEST_TOML...`.

The files are those that `make tune-all` keeps as results/tuning/KIND/DATASET/MODEL.toml. What differs from the defaults
is written to src/kuramotognn/config, with how it was found: to recommended/DATASET/MODEL.toml where the kind is
recommended, else to presets/KIND/DATASET/MODEL.toml.
"""

import sys
from pathlib import Path

import tomli_w

from kuramotognn.atomic_write import write_atomically
from kuramotognn.config.resolve import flatten, nest, read_toml, resolve

CONFIG = Path(__file__).parent.parent / "src" / "kuramotognn" / "config"
RECOMMENDED = "recommended"


def adopt(path: Path) -> Path:
    """Write the settings of a study's winner; where to."""
    found = resolve({}, read_toml(path)).config
    dataset, model, kind = found.dataset, found.model.name, path.absolute().parent.parent.name
    plain = resolve({}, {"dataset": dataset, "recommended": False, "model": {"name": model}}).config
    defaults = dict(flatten(plain.model_dump(mode="json")))
    settings = {
        name: value for name, value in flatten(found.model_dump(mode="json")) if value != defaults.get(name, value)
    }
    story = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    folder = CONFIG / RECOMMENDED if kind == RECOMMENDED else CONFIG / "presets" / kind
    target = folder / dataset / f"{model}.toml"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, "\n".join([*story, "", tomli_w.dumps(nest(settings))]))
    preset = {} if kind == RECOMMENDED else {"preset": kind}
    read = resolve({"dataset": dataset, "model": {"name": model}} | preset).config
    assert read.model_copy(update={"preset": None}) == found, f"{target} does not say all of {path}"
    return target


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(adopt(Path(name)).relative_to(CONFIG))
