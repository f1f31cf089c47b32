"""Every public name is documented and typed; the documents name things that exist and no machine."""
from __future__ import annotations

import inspect
import pathlib
import re
import subprocess
import sys
import typing

import pytest
import torch

import minidynamo
from minidynamo.base.config import Config

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
CALLABLES = [name for name in minidynamo.__all__ if inspect.isfunction(getattr(minidynamo, name))]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@pytest.mark.parametrize("name", minidynamo.__all__)
def test_names_exist_and_are_documented(name):
    thing = getattr(minidynamo, name)
    assert name in dir(minidynamo)
    if name != "counters":          # a plain mapping; observe/recorder.py documents its class
        assert len(inspect.getdoc(thing) or "") > 20, name
    assert f"`{name}" in (ROOT / "README.md").read_text(encoding="utf-8") or name == "OptimizedModule"


@pytest.mark.parametrize("name", CALLABLES)
def test_functions_are_typed(name):
    fn = getattr(minidynamo, name)
    signature = inspect.signature(fn)
    assert signature.return_annotation is not signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty, parameter


def test_nothing_public_besides():
    from minidynamo import api
    public = {name for name, thing in vars(api).items()
              if not name.startswith("_") and getattr(thing, "__module__", None) == api.__name__}
    assert public - {"F"} <= set(api.__all__), "a function of api.py is neither public nor private by name"
    assert set(api.__all__) | {"config", "exc", "testing"} == set(minidynamo.__all__)


def test_errors_are_public_and_documented():
    from minidynamo import exc
    for name in exc.__all__:
        error = getattr(exc, name)
        assert issubclass(error, BaseException) and inspect.getdoc(error), name


def test_options_are_commented_and_typed():
    source = inspect.getsource(Config)
    for name, kind in typing.get_type_hints(Config).items():
        if not name.startswith("_"):
            line = next(line for line in source.splitlines() if line.strip().startswith(f"{name}: "))
            assert "#" in line and kind in (bool, int, float, str), line


def test_the_package_is_typed():
    assert (ROOT / "minidynamo" / "py.typed").exists()


def test_code_needs_no_torch():
    program = ("import sys; sys.modules['torch'] = None; import minidynamo.code as code; "
               "code.assemble(code.decode((lambda: 1).__code__))")
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=60)


# ------------------------------------------------------------------ the documents
@every_page
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@every_page
def test_files_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:[a-z_]+/)+[a-z_0-9]+\.(?:py|md))", text):
        assert any((root / name).exists() for root in (ROOT, ROOT / "minidynamo")), name


@every_page
def test_commands_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for command in re.findall(r"python -m minidynamo ([a-z]+)", text):
        assert command in ("explain", "bytecode", "tables", "reasons"), command


@pytest.mark.parametrize("path", [*PAGES, ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob(".ci/*")],
                         ids=lambda path: path.name)
def test_no_machine_is_named(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"(?<![\w.])/(work|home|root|tmp|opt|Users)/|https?://(?!github\.com)\S*(pypi|pythonhosted)|index-url", text)


def test_the_readme_runs():
    """The README's first example, and the names of its table."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", text, re.S)
    assert example is not None
    done = subprocess.run([sys.executable, "-c", _as_file(example.group(1))], cwd=ROOT, capture_output=True, text=True,
                          timeout=120, check=True)
    assert "hi" in done.stdout and "MD0101" in done.stdout
    for name in re.findall(r"`(\w+)\(", text[text.index("## Names"):]):
        assert hasattr(minidynamo, name) or name in ("check",), name


def _as_file(source: str) -> str:
    """A module that has source lines, as the report shows them."""
    return (f"import linecache; source = {source!r}; linecache.cache['example.py'] = (len(source), None, "
            f"source.splitlines(True), 'example.py'); exec(compile(source, 'example.py', 'exec'))")


def test_torch_is_the_pinned_one():
    bound = re.search(r"torch==(\d+\.\d+)\.\*", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert bound is not None and torch.__version__.startswith(bound.group(1))
