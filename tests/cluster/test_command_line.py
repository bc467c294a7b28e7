"""`--cluster` without a cluster: what the command line says."""

import importlib.util

import pytest

from cli_workspace import workspace
from ramify.cli.main import run


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
@pytest.mark.parametrize("command", ["train", "predict"])
def test_without_ray_one_line_says_what_to_install(command, tmp_path, capsys):
    folder = workspace()
    model = tmp_path / "model" if command == "train" else folder / "model"
    arguments = [command, folder / "train.txt", "--model", model, "--cluster", "auto"]
    assert run([str(a) for a in (*arguments, *(["--out", tmp_path / "out"] if command == "predict" else []))]) == 2
    assert capsys.readouterr().err.splitlines() == ["error: ramify.cluster needs Ray: pip install 'ramify[ray]'"]


def test_several_files_need_a_cluster(tmp_path, capsys):
    files = [str(workspace() / name) for name in ("train.txt", "test.txt")]
    assert run(["train", *files, "--model", str(tmp_path / "model")]) == 2
    assert "train on one, or on all of them with --cluster auto" in capsys.readouterr().err
    assert run(["predict", *files, "--model", str(workspace() / "model")]) == 2
    assert "predict one, or all of them with --cluster auto" in capsys.readouterr().err
