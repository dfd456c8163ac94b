"""The examples that take seconds are run, and their numbers are checked; those for clusters are parsed."""

import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from kuramotognn.cli.app import make_app

EXAMPLES = Path(__file__).parent.parent / "examples"


def table(name: str, capsys: pytest.CaptureFixture[str]) -> list[list[float]]:
    """The numbers that an example prints, one row per line."""
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()[1:]
    return [[float(word) for word in line.replace(",", " ").split() if word[-1].isdigit()] for line in lines]


def test_phase_lag(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table("phase_lag", capsys)
    for _, order, frequency, predicted in rows[:-1]:
        assert order > 0.99
        assert frequency == pytest.approx(predicted, abs=2e-3)
    assert rows[-1][1] < 0.3, "no synchrony beyond π/2"


def test_delay(capsys: pytest.CaptureFixture[str]) -> None:
    for _, order, frequency, predicted, stability in table("delay", capsys):
        if stability > 0:
            assert order > 0.99
            assert frequency == pytest.approx(predicted, abs=2e-3)
        else:
            assert order < 0.5


def test_adaptive_coupling(capsys: pytest.CaptureFixture[str]) -> None:
    fixed, *adaptive = table("adaptive_coupling", capsys)
    assert fixed[3] == pytest.approx(fixed[4], abs=0.01), "fixed couplings synchronise the groups"
    for _, inside, between, first, second in adaptive:
        assert inside > 0.95
        assert abs(between) < 0.3
        assert second - first > 1.0


def test_signed_coupling(capsys: pytest.CaptureFixture[str]) -> None:
    attractive, signed = table("signed_coupling", capsys)
    assert attractive == pytest.approx([1.0, 1.0, 1.0, 0.0], abs=0.02)
    assert signed == pytest.approx([0.0, 1.0, 1.0, 1.0], abs=0.02)


@pytest.mark.parametrize("script", sorted((EXAMPLES / "cluster").glob("*.sh")), ids=lambda path: path.stem)
def test_scripts_for_clusters_are_valid_bash(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_the_manifest_is_a_ray_job_and_a_volume_for_its_results() -> None:
    job, claim = yaml.safe_load_all((EXAMPLES / "cluster" / "kuberay.yaml").read_text(encoding="utf-8"))
    assert (job["kind"], claim["kind"]) == ("RayJob", "PersistentVolumeClaim")
    head = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    assert head["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert yaml.safe_load(job["spec"]["runtimeEnvYAML"]) == {"pip": ["kuramotognn[cluster]"]}


@pytest.mark.parametrize("path", sorted((EXAMPLES / "cluster").iterdir()), ids=lambda path: path.stem)
def test_the_command_of_a_cluster_example_exists_with_its_flags(path: Path) -> None:
    (command,) = re.findall(r"kuramotognn (reproduce .*)", path.read_text(encoding="utf-8"))
    make_app(["reproduce"]).parse_args(shlex.split(command), exit_on_error=False, print_error=False)
