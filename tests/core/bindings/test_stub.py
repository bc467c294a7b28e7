"""The stub of the compiled module says what the module has: names, parameters, defaults and types."""

from __future__ import annotations

import ast
import inspect
import re
from importlib.resources import files

import pytest

from ramify import _core

STUB = ast.parse(files("ramify").joinpath("_core.pyi").read_text(encoding="utf-8"))
ARRAY = re.compile(r"(?:numpy\.)?ndarray\[dtype=(\w+)[^\]]*\]")


def public(names):
    return {name for name in names if not name.startswith("_")}


def stubbed(nodes):
    """Functions, classes and names of a stub's body."""
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    names = {node.target.id: ast.unparse(node.annotation) for node in nodes if isinstance(node, ast.AnnAssign)}
    return functions, classes, names


FUNCTIONS, CLASSES, NAMES = stubbed(STUB.body)


def real_signature(function):
    """What nanobind knows about a function, in the notation of the stub."""
    [(text, _, defaults)] = function.__nb_signature__
    text = ARRAY.sub(lambda match: f"NDArray[np.{match[1]}]", text).replace("ramify._core.", "")
    text = re.sub(r"\\(\d+)", lambda match: repr(defaults[int(match[1])]), text)
    text = text.replace("def (", "def getter(")
    return ast.parse(text + ": ...").body[0]


def parameters(node):
    """(name, annotation, default, whether by name only), without self."""
    positional = node.args.posonlyargs + node.args.args
    defaults = [None] * (len(positional) - len(node.args.defaults)) + node.args.defaults
    listed = [(argument, default, False) for argument, default in zip(positional, defaults, strict=True)]
    listed += [(a, d, True) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    return [
        (a.arg, a.annotation and ast.unparse(a.annotation), d and ast.unparse(d), by_name)
        for a, d, by_name in listed
        if a.arg != "self"
    ]


def loose(annotation):
    """nanobind says tuple, dict and list without what is inside."""
    return re.sub(r"^(tuple|dict|list)\[.*\]( \| None)?$", r"\1\2", annotation, flags=re.DOTALL)


def assert_same(stub, function):
    real = real_signature(function)
    assert [(n, loose(a), d, k) for n, a, d, k in parameters(stub)] == parameters(real)
    assert loose(ast.unparse(stub.returns)) == loose(ast.unparse(real.returns))


def test_the_stub_names_everything_and_nothing_else():
    assert public(dir(_core)) == set(FUNCTIONS) | set(CLASSES) | set(NAMES)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_have_the_parameters_of_the_stub(name):
    assert_same(FUNCTIONS[name], getattr(_core, name))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_names_have_the_types_of_the_stub(name):
    assert type(getattr(_core, name)).__name__ == loose(NAMES[name])


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_classes_have_the_members_of_the_stub(name):
    real, (members, _, names) = getattr(_core, name), stubbed(CLASSES[name].body)
    if issubclass(real, Exception):
        assert [base.__name__ for base in real.__bases__] == [ast.unparse(base) for base in CLASSES[name].bases]
        return
    assert public(vars(real)) == public(members) | public(names)
    for member, stub in members.items():
        attribute = inspect.getattr_static(real, member)
        is_property = any(ast.unparse(decorator) == "property" for decorator in stub.decorator_list)
        assert is_property == isinstance(attribute, property)
        assert_same(stub, attribute.fget if is_property else attribute)
