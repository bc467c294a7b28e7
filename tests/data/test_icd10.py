"""The ICD-10-CM demo data."""

from __future__ import annotations

import sys

import pytest

from ramify.data.icd10 import code_labels, load_icd10, with_codes_only, with_general_terms


@pytest.fixture(scope="module")
def icd10():
    return load_icd10()


def key(text):
    return " ".join(text.casefold().split())


def test_a_code_is_labelled_with_its_category_block_and_chapter(icd10):
    place = icd10.train.texts.index("Cholera due to Vibrio cholerae 01, biovar cholerae")
    labels = icd10.train.labels[place]
    assert labels == ["A00.0", "A00", "A00-A09", "chapter 1"]
    assert [icd10.names[label] for label in labels] == [
        "Cholera due to Vibrio cholerae 01, biovar cholerae",
        "Cholera",
        "Intestinal infectious diseases",
        "Certain infectious and parasitic diseases",
    ]


def test_a_reference_to_a_code_is_a_training_text_of_it(icd10):
    place = icd10.train.texts.index("Clostridium difficile foodborne intoxication and infection")
    assert icd10.train.labels[place] == ["A04.7", "A04", "A00-A09", "chapter 1"]
    assert not any("(A04.7" in text for text in icd10.train.texts)


def test_subcategories_are_not_labels_of_the_code(icd10):
    place = next(i for i, labels in enumerate(icd10.train.labels) if labels[0] == "S52.521A")
    assert icd10.train.labels[place] == ["S52.521A", "S52", "S50-S59", "chapter 19"]


def test_sizes(icd10):
    assert 90_000 < len(icd10.names) < 120_000
    assert len(icd10.train.texts) == len(icd10.train.labels) > 100_000
    assert 2000 < len(icd10.test.texts) == len(icd10.test.labels) < 3000


def test_texts_are_unique_across_training_and_test(icd10):
    train, test = (list(map(key, part.texts)) for part in (icd10.train, icd10.test))
    assert not set(train) & set(test)
    assert len(set(train)) == len(train)
    assert len(set(test)) == len(test)


def test_every_label_has_a_name_and_a_training_text(icd10):
    trained = {label for labels in icd10.train.labels for label in labels}
    tested = {label for labels in icd10.test.labels for label in labels}
    assert trained == set(icd10.names)
    assert tested <= trained
    assert all(icd10.names.values())
    assert all(icd10.train.texts)


def test_a_larger_test_share_extends_the_sample(icd10):
    larger = load_icd10(test_share=0.4)
    assert set(icd10.test.texts) < set(larger.test.texts)
    assert len(larger.test.texts) == pytest.approx(2 * len(icd10.test.texts), rel=0.1)
    assert all(
        labels == larger.test.labels[larger.test.texts.index(text)] for text, labels in zip(*icd10.test, strict=True)
    )


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_bad_test_share_is_rejected(share):
    with pytest.raises(ValueError, match="test_share must be at least 0 and below 1"):
        load_icd10(test_share=share)


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "simple_icd_10_cm", None)
    with pytest.raises(ImportError, match=r"pip install 'ramify\[demo\]'"):
        load_icd10()


def test_codes_only_leaves_out_titles_and_upper_levels(icd10):
    only = with_codes_only(icd10)
    place = only.train.texts.index("Cholera due to Vibrio cholerae 01, biovar cholerae")
    assert only.train.labels[place] == ["A00.0"]
    assert "Intestinal infectious diseases" not in only.train.texts
    assert all(labels for part in (only.train, only.test) for labels in part.labels)
    assert {label for labels in only.train.labels for label in labels} == set(only.names) == code_labels(icd10.names)


def test_a_title_above_few_codes_is_a_text_of_all_of_them(icd10):
    only = with_codes_only(icd10)
    general = with_general_terms(only)
    assert general.test == only.test
    assert general.train.texts[: len(only.train.texts)] == only.train.texts
    added = dict(
        zip(general.train.texts[len(only.train.texts) :], general.train.labels[len(only.train.texts) :], strict=True)
    )
    assert added["Cholera"] == ["A00.0", "A00.1", "A00.9"]  # a category, which is no code
    infarction = added["ST elevation (STEMI) myocardial infarction of anterior wall"]
    assert infarction == ["I21.01", "I21.02", "I21.09", "I21.0"]  # a subcategory, which is a code itself
    assert "Certain infectious and parasitic diseases" not in added
    assert max(map(len, added.values())) <= 301
    codes = {label for labels in added.values() for label in labels}
    assert codes <= set(only.names)
    assert max(map(len, codes)) < len("S52.521A")
