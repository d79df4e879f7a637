"""The commands of the Makefile: what they say when something is missing, what they never touch."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="make is not installed; see CONTRIBUTING.md")


def executable(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def project(tmp_path):
    """A copy of what the commands need, and a folder of programs that stands before all others."""
    folder = tmp_path / "project"
    (folder / ".ci").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for name in ("Makefile", "pyproject.toml", ".ci/install"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def run(project, *words):
    programs = project.parent / "bin"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTHON"))}
    environment["PATH"] = f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
    return subprocess.run(
        [MAKE, *words], cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def test_help_lists_every_command():
    text = subprocess.run(
        [MAKE, "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    hidden = {"install", "install-dev", "style"}
    assert set(re.findall(r"^  make (\S+)", text, re.MULTILINE)) == set(targets) - hidden
    readme = (ROOT / "README.md").read_text("utf-8")
    assert all(f"make {target}" in readme for target in set(targets) - hidden - {"help"})


def test_a_missing_venv_module_is_one_sentence(project):
    # Debian's python3 without python3-venv: it runs, but has no ensurepip.
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python"):
        executable(
            project.parent / "bin" / name,
            'case "$2" in *ensurepip*) exit 1 ;; *) exit 0 ;; esac',
        )
    done = run(project, "book")
    assert done.returncode != 0
    assert (
        "has no venv module; on Debian or Ubuntu run: apt-get install python3-venv" in done.stderr
    )
    assert "Traceback" not in done.stderr


def test_an_old_python_is_one_sentence(project):
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python"):
        executable(project.parent / "bin" / name, "exit 1")
    done = run(project, "book")
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed and was not found" in done.stderr


def test_a_failed_install_is_one_sentence_and_is_tried_again(project):
    python = project / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    executable(python, 'case "$*" in *install*) exit 1 ;; *) exit 0 ;; esac')
    for _ in range(2):
        done = run(project, "book")
        assert done.returncode != 0
        assert "pip could not install the packages" in done.stderr
        assert "Installing posenc[book,class]" in done.stdout


def test_clean_keeps_a_class(project):
    kept = [
        "submitted/ada/02-sinusoidal/02-sinusoidal.ipynb",
        "autograded/ada/02-sinusoidal/02-sinusoidal.ipynb",
        "feedback/ada/02-sinusoidal/02-sinusoidal.html",
        "exercises/02-sinusoidal/02-sinusoidal.ipynb",
        "gradebook.db",
        "submitted/ada/02-sinusoidal/__pycache__/helper.pyc",
        ".venv-oracles/lib/__pycache__/x.pyc",
    ]
    removed = ["_build/html/index.html", "posenc/__pycache__/x.pyc", "book/_ext/__pycache__/x.pyc"]
    (project / "tests").mkdir()
    for name in kept + removed:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    assert run(project, "clean").returncode == 0
    assert all((project / name).is_file() for name in kept)
    assert not any((project / name).exists() for name in removed)


def test_the_gate_runs_what_the_readme_tells_people_to_run():
    gate = (ROOT / ".ci/run").read_text("utf-8")
    assert gate.index("make test\n") < gate.index("make test-all\n")
    assert "POSENC_REQUIRE_BROWSER=1" in gate
    assert os.access(ROOT / ".ci/run", os.X_OK)
