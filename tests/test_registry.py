"""The registry is the one list of classifiers, and `import ramify` loads none of them until it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ramify
from ramify import registry
from ramify.optimizers import FOBOS, AdaGrad

SHIPPED = [name for name in ramify.__all__ if name.endswith("Classifier")]
HEAVY = ("numpy", "scipy", "sklearn", "rich", "typer", "ramify._core")


def said_by(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", SHIPPED)
def test_every_registered_class_is_where_the_registry_says(name):
    cls = registry.load_class(name)
    assert (cls.__name__, cls.__module__) == (name, f"{registry.CLASSIFIERS[name].folder}.classifier")
    assert registry.is_registered(cls)
    assert getattr(ramify, name) is cls


def test_a_class_that_only_has_the_name_of_a_classifier_is_not_registered():
    assert not registry.is_registered(type("PLTClassifier", (), {}))


def test_short_names_are_unique():
    names = [entry.name for entry in registry.CLASSIFIERS.values() if entry.name] + list(registry.PRESETS)
    assert len(set(names)) == len(names)
    assert set(names) - set(registry.summaries()) == {"ofo"}  # thresholds of a classifier, not a classifier to train


@pytest.mark.parametrize("name", sorted(registry.PRESETS))
def test_settings_replace_those_of_a_preset(name):
    preset = registry.PRESETS[name]
    classifier = registry.make_classifier(name)
    assert type(classifier).__name__ == preset.class_name
    for parameter, value in preset.settings.items():
        made = getattr(classifier, parameter)
        if isinstance(value, registry.Component):
            assert type(made).__name__ == value.class_name
            plain = {key: one for key, one in value.settings.items() if not isinstance(one, registry.Component)}
            assert plain.items() <= made.get_params(deep=False).items()
        else:
            assert made == value
    classifier._check_parameters()
    assert registry.make_classifier(name, random_state=7).random_state == 7
    parameter = next(iter(preset.settings))
    assert getattr(registry.make_classifier(name, **{parameter: "other"}), parameter) == "other"


@pytest.mark.parametrize("name", [name for name in SHIPPED if registry.presets_of(name)])
def test_a_classifier_is_made_as_its_authors_ran_it(name):
    cls = registry.load_class(name)
    names = registry.presets_of(name)
    assert repr(cls.from_paper()) == repr(registry.make_classifier(names[0]))
    for preset in names:
        assert registry.PRESETS[preset].paper
        assert cls.from_paper(preset, random_state=3).random_state == 3
    with pytest.raises(ValueError, match=f"preset must be one of {names[0]}"):
        cls.from_paper("oak")


def test_a_component_that_is_given_keeps_what_it_does_not_set_from_the_preset():
    steps = registry.make_classifier("oplt", optimizer=AdaGrad(eps=0.1)).optimizer
    assert (steps.eps, steps.learning_rate, steps.decay, steps.eps_in_root) == (0.1, 1.0, 0.0, True)
    assert registry.make_classifier("oplt", optimizer=FOBOS()).optimizer.learning_rate is None


def test_every_paper_has_a_preset_and_a_method_without_one_says_so():
    papers = {preset.paper for preset in registry.PRESETS.values()} - {""}
    authors = ("Jasinska-Kobus", "Jasinska et al. 2016", "Choromanska", "Baharav", "Mineiro")
    assert len(papers) == 5
    assert all(any(paper.startswith(author) for paper in papers) for author in authors)
    with pytest.raises(ValueError, match="MemoryTreeClassifier has no preset of a paper"):
        ramify.MemoryTreeClassifier.from_paper()


def test_a_name_that_does_not_exist_is_refused_with_the_names_that_do():
    with pytest.raises(ValueError, match=r"'lomtee': choose one of plt, .*lomtree"):
        registry.make_classifier("lomtee")


def test_import_ramify_loads_nothing_heavy_however_the_program_is_called():
    for program in ("ramify", "python", "notebook"):
        loaded = said_by(
            f"import sys; sys.argv[0] = {program!r}; import ramify; print([m for m in {HEAVY} if m in sys.modules])"
        )
        assert loaded == "[]"


def test_names_are_listed_before_they_are_loaded_and_a_star_import_loads_them_all():
    code = (
        "import ramify; names = dir(ramify); from ramify import *; "
        "print(set(ramify.__all__) <= set(names), all(n in globals() for n in ramify.__all__), ramify.load is load)"
    )
    assert said_by(code) == "True True True"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'ramify' has no attribute 'Oak'"):
        ramify.Oak  # noqa: B018


def test_type_checkers_see_every_public_name():
    (block,) = (
        node
        for node in ast.parse(Path(ramify.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {alias.asname: statement.module for statement in block.body for alias in statement.names}
    assert sorted(seen) == ramify.__all__
    assert {name: seen[name] for name in SHIPPED} == {
        name: f"{registry.CLASSIFIERS[name].folder}.classifier" for name in SHIPPED
    }


@pytest.mark.parametrize("name", [name for name, preset in registry.PRESETS.items() if preset.paper])
def test_a_preset_of_a_paper_trains_answers_and_comes_back_from_its_file(name, tmp_path):
    from ramify.data.synthetic import make_multiclass, make_multilabel

    is_multiclass = registry.PRESETS[name].class_name == "LOMTreeClassifier"
    data = (make_multiclass if is_multiclass else make_multilabel)(150, 12, 60, random_state=0)
    clf = registry.make_classifier(name, random_state=0).fit(data.X, data.y if is_multiclass else data.Y)
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    if name == "fasttext-2021":  # rows of numbers: a file holds no vectorizer that was not used
        clf.vectorizer = None
    assert repr(again) == repr(clf)
    assert (again.predict_proba(data.X, top_k=3) != clf.predict_proba(data.X, top_k=3)).nnz == 0
