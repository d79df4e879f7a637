"""What the package imports, exports, documents and ships."""

import ast
import dataclasses
import email
import importlib
import inspect
import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from numpydoc.validate import validate

import posenc
import posenc.exercises
import posenc.grading
import posenc.lab
import posenc.plotting

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "posenc"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

# The design: a module imports only modules before it, and _validate.
ORDER = [
    *["_validate", "attention", "sinusoidal", "rotation", "learned", "rotary"],
    *["bias", "scaling", "precision", "lab", "plotting"],
]
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")
# Helpers that chapters share, which are no part of the interface.
SHARED = {"complex_pairs", "pair_columns", "repeated_turns"}


def modules_after(statement):
    """Run a statement in a fresh interpreter and return the names of modules that it imported."""
    code = (
        f"import json, sys; before = set(sys.modules); {statement}; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("statement", "alien"),
    [
        ("import posenc", {"posenc.exercises", "posenc.grading", "posenc.lab", "posenc.plotting"}),
        ("from posenc.grading import check, grade", {"posenc.plotting"}),
    ],
)
def test_importing_needs_numpy_and_the_standard_library_alone(statement, alien):
    imported = modules_after(statement)
    assert {"posenc", "numpy"} <= imported
    assert not imported & alien
    known = {"posenc", "numpy", *sys.stdlib_module_names}
    tops = {name.partition(".")[0] for name in imported} - known
    # Compiled parts of NumPy register modules of their compiler's run time.
    assert {name for name in tops if "cython" not in name} == set()


def test_modules_that_the_import_test_looks_for_would_be_seen():
    assert {"posenc.exercises", "posenc.grading"} <= modules_after("import posenc.grading")
    assert "matplotlib" in modules_after("import posenc.plotting")


def imports_of(path):
    """Return the absolute names of all modules that a file imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            names.add(node.module)
            if node.module == "posenc":
                names |= {f"posenc.{alias.name}" for alias in node.names}
                names.discard("posenc")
    return names


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_modules_before_it(module):
    assert module in ORDER, f"{module} has no place in the order of modules"
    allowed = {f"posenc.{earlier}" for earlier in ORDER[: ORDER.index(module)]}
    own = {name for name in imports_of(PACKAGE / f"{module}.py") if name.split(".")[0] == "posenc"}
    assert own <= allowed


def test_plotting_alone_imports_matplotlib():
    importers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name.split(".")[0] == "matplotlib" for name in imports_of(path))
    }
    # The second runs students' notebooks, which plot.
    assert importers == {"plotting.py", "grading/isolation/inside.py"}


def test_interface_is_sorted_and_complete():
    assert posenc.__all__ == sorted(posenc.__all__)
    chapters = [name for name in MODULES if name not in ("_validate", "lab", "plotting")]
    public = {
        name
        for chapter in chapters
        for name, value in vars(importlib.import_module(f"posenc.{chapter}")).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == f"posenc.{chapter}"
    }
    assert set(posenc.__all__) == public - SHARED
    assert public >= SHARED
    for name in posenc.__all__:
        assert callable(getattr(posenc, name))


def documented():
    named = [(f"posenc.{name}", getattr(posenc, name)) for name in posenc.__all__]
    # These are imported by name.
    for module in (posenc.lab, posenc.plotting):
        named += [
            (f"{module.__name__}.{name}", value)
            for name, value in vars(module).items()
            if name[0] != "_" and getattr(value, "__module__", "") == module.__name__
        ]
    for module in (posenc.grading, posenc.exercises):
        named += [
            (f"{module.__name__}.{name}", getattr(module, name))
            for name in module.__all__
            if callable(getattr(module, name))
        ]
    for name, value in named:
        yield name
        if inspect.isclass(value) and not dataclasses.is_dataclass(value):
            yield from (f"{name}.{own}" for own in vars(value) if own[0] != "_")


def shortcomings(name):
    chosen = set(PROJECT["tool"]["numpydoc_validation"]["checks"])
    assert "all" in chosen, "beside 'all', the list holds what is left out"
    return [error for error in validate(name)["errors"] if error[0] not in chosen]


@pytest.mark.parametrize("name", list(documented()))
def test_docstring_follows_numpydoc(name):
    assert shortcomings(name) == []


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in documented()
        if name.count(".") == 1 or name in ("posenc.grading.check", "posenc.grading.grade")
    ],
)
def test_docstring_has_an_example(name):
    value = getattr(posenc.grading if "grading" in name else posenc, name.split(".")[-1])
    assert ">>> " in inspect.getdoc(value)


def test_public_methods_are_validated_too():
    assert "posenc.LearnedPositions.lookup" in set(documented())


@pytest.mark.parametrize("name", posenc.__all__)
def test_signature_is_typed(name):
    signature = inspect.signature(getattr(posenc, name))
    untyped = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
    assert untyped == []
    assert inspect.isclass(getattr(posenc, name)) or signature.return_annotation is not (
        signature.empty
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (path,) = target.glob("*.whl")
    assert path.name == f"posenc-{posenc.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_wheel_holds_the_package_and_its_type_marker(wheel):
    names = set(wheel.namelist())
    assert "posenc/py.typed" in names
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "__pycache__" not in path.parts
    }
    assert sources <= names


def test_wheel_holds_no_solutions_tests_or_seeds(wheel):
    about = f"posenc-{posenc.__version__}.dist-info"
    for name in wheel.namelist():
        parts = name.lower().split("/")
        assert parts[0] in ("posenc", about)
        assert not {"solutions", "tests", "seeds", "__pycache__"} & set(parts)
        assert not parts[-1].startswith(("test_", "conftest", ".env"))
        assert not parts[-1].endswith((".db", ".pyc", ".key"))
        # What students get anyway, and `posenc reset` restores from.
        handed_out = parts[:-1] == ["posenc", "exercises", "notebooks"]
        assert handed_out or not parts[-1].endswith(".ipynb")
        lines = {line.strip().upper() for line in wheel.read(name).decode("utf-8").splitlines()}
        assert "### BEGIN SOLUTION" not in lines
        assert "### BEGIN HIDDEN TESTS" not in lines


def test_numpy_is_the_only_requirement_at_run_time(wheel):
    about = f"posenc-{posenc.__version__}.dist-info"
    metadata = email.message_from_bytes(wheel.read(f"{about}/METADATA"))
    always = [need for need in metadata.get_all("Requires-Dist") if "extra ==" not in need]
    assert always == ["numpy>=1.26"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert any(name.startswith(f"{about}/licenses/") for name in wheel.namelist())
