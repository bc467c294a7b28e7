"""What every classifier answers: the contract of sparse probability estimates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from contract.small_data import N_FEATURES, N_LABELS, make_data, same


def check_form(answer, n_rows, n_labels=N_LABELS):
    assert isinstance(answer, sparse.csr_array)
    assert answer.dtype == np.float32
    assert answer.shape == (n_rows, n_labels)
    fresh = sparse.csr_array((answer.data, answer.indices, answer.indptr), shape=answer.shape)
    assert fresh.has_canonical_format
    assert ((answer.data >= 0) & (answer.data <= 1)).all()


def test_an_answer_without_arguments_holds_what_is_at_least_a_hundredth(fitted, data):
    clf = fitted()
    answer = clf.predict_proba(data.X)
    check_form(answer, data.X.shape[0])
    everything = clf.predict_proba(data.X, threshold=0.0)
    assert everything.nnz == everything.shape[0] * N_LABELS
    assert (answer.data >= np.float32(0.01)).all()
    assert answer.nnz == (everything.data >= np.float32(0.01)).sum()


@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.5])
def test_a_threshold_keeps_exactly_what_reaches_it(fitted, data, threshold):
    clf = fitted()
    everything = clf.predict_proba(data.X, threshold=0.0).toarray()
    answer = clf.predict_proba(data.X, threshold=threshold)
    check_form(answer, data.X.shape[0])
    expected = np.where(everything >= np.float32(threshold), everything, 0)
    np.testing.assert_array_equal(answer.toarray(), expected)


def test_each_label_may_have_its_own_threshold(fitted, data):
    clf = fitted()
    everything = clf.predict_proba(data.X, threshold=0.0).toarray()
    thresholds = np.random.default_rng(0).random(N_LABELS).astype(np.float32) * 0.4
    thresholds[3] = np.inf  # never
    answer = clf.predict_proba(data.X, threshold=thresholds)
    check_form(answer, data.X.shape[0])
    np.testing.assert_array_equal(answer.toarray(), np.where(everything >= thresholds, everything, 0))


@pytest.mark.parametrize("top_k", [1, 3, N_LABELS, 1000])
def test_top_k_holds_the_k_most_probable(fitted, data, top_k):
    clf = fitted()
    everything = clf.predict_proba(data.X, threshold=0.0).toarray()
    answer = clf.predict_proba(data.X, top_k=top_k)
    check_form(answer, data.X.shape[0])
    k = min(top_k, N_LABELS)
    assert (np.diff(answer.indptr) == k).all()
    found = np.sort(answer.data.reshape(-1, k), axis=1)
    np.testing.assert_array_equal(found, np.sort(everything, axis=1)[:, -k:])
    rows = np.repeat(np.arange(answer.shape[0]), k)
    np.testing.assert_array_equal(everything[rows, answer.indices], answer.data)


def test_top_k_and_threshold_together_mean_at_most_k_that_reach_it(fitted, data):
    clf = fitted()
    threshold = float(np.quantile(clf.predict_proba(data.X, threshold=0.0).data, 0.8))
    both = clf.predict_proba(data.X, top_k=2, threshold=threshold)
    alone = clf.predict_proba(data.X, top_k=2)
    check_form(both, data.X.shape[0])
    expected = np.where(alone.toarray() >= np.float32(threshold), alone.toarray(), 0)
    np.testing.assert_array_equal(both.toarray(), expected)


@pytest.mark.parametrize("wanted", [[3], [7, 1], [], list(range(N_LABELS)), [2, 2]])
def test_named_labels_get_exactly_their_probabilities(fitted, data, wanted):
    everything = fitted().predict_proba(data.X, threshold=0.0).toarray()
    answer = fitted().predict_proba(data.X, labels=wanted)
    check_form(answer, data.X.shape[0])
    assert (np.diff(answer.indptr) == len(set(wanted))).all()
    expected = np.zeros_like(everything)
    expected[:, wanted] = everything[:, wanted]
    np.testing.assert_allclose(answer.toarray(), expected, rtol=2e-6)


def test_named_labels_are_named_as_the_user_named_them(fitted, data):
    clf = fitted("collections")
    column = list(clf.classes_).index(data.names[5])
    answer = clf.predict_proba(data.X[:3], labels=[data.names[5]])
    assert answer.indices.tolist() == [column] * 3
    with pytest.raises(ValueError, match=r"did you mean 'Thema \d+, größer'"):
        clf.predict_proba(data.X, labels=["Thema 5, grösser"])


def test_predict_gives_labels_more_likely_than_not_or_than_their_thresholds(fitted, data):
    clf = fitted()
    predicted = clf.predict(data.X)
    assert isinstance(predicted, sparse.csr_array)
    assert predicted.dtype.kind == "i"
    np.testing.assert_array_equal(
        predicted.toarray(),
        (clf.predict_proba(data.X, threshold=0.0).toarray() >= getattr(clf, "thresholds_", 0.5)).astype(int),
    )


def test_labels_come_with_their_probabilities_best_first(fitted, data):
    clf = fitted("collections")
    answer = clf.predict_proba(data.X, top_k=4)
    for row, pairs in enumerate(clf.predict_labels(data.X, top_k=4)):
        probabilities = [probability for _, probability in pairs]
        assert probabilities == sorted(probabilities, reverse=True)
        assert all(type(label) is str and type(probability) is float for label, probability in pairs)
        columns = [list(clf.classes_).index(label) for label, _ in pairs]
        assert dict(zip(columns, probabilities, strict=True)) == dict(
            zip(answer[[row]].indices.tolist(), answer[[row]].data.tolist(), strict=True)
        )
    assert all(len(pairs) == 5 for pairs in clf.predict_labels(data.X))
    assert all(p >= 0.2 for pairs in clf.predict_labels(data.X, top_k=None, threshold=0.2) for _, p in pairs)


@pytest.mark.parametrize("form", ["csr_array", "csr_matrix", "float64", "array", "flat array", "dict", "numpy dict"])
def test_one_row_in_any_form_is_answered_as_in_a_batch(fitted, data, form):
    clf = fitted("collections")
    row = data.X[[5]]
    x = {
        "csr_array": row,
        "csr_matrix": sparse.csr_matrix(row),
        "float64": row.astype(np.float64),
        "array": row.toarray(),
        "flat array": row.toarray().ravel(),
        "dict": dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)),
        "numpy dict": dict(zip(row.indices, row.data, strict=True)),
    }[form]
    batch = clf.predict_labels(data.X, top_k=4)[5]
    assert clf.predict_one(x, top_k=4) == batch
    if sparse.issparse(x):
        assert clf.predict_labels(x, top_k=4) == [batch]
    threshold = batch[1][1]
    assert clf.predict_one(x, top_k=4, threshold=threshold) == [pair for pair in batch if pair[1] >= threshold]


def test_features_of_a_dict_that_the_model_never_saw_carry_no_weight(fitted, data):
    clf = fitted()
    assert clf.predict_one({0: 1.0, N_FEATURES: 5.0, 10**12: 1.0}) == clf.predict_one({0: 1.0})
    assert len(clf.predict_one({})) == 5


def test_an_answer_does_not_depend_on_the_rows_around_it(fitted, data):
    clf = fitted()
    batch = clf.predict_proba(data.X, top_k=3)
    alone = sparse.vstack([clf.predict_proba(data.X[[row]], top_k=3) for row in range(data.X.shape[0])], format="csr")
    assert same(batch, sparse.csr_array(alone))


def test_no_rows_give_an_empty_answer_of_the_right_shape(fitted, data):
    clf = fitted()
    for none in (data.X[:0], np.zeros((0, N_FEATURES))):
        check_form(clf.predict_proba(none), 0)
        check_form(clf.predict_proba(none, top_k=2, labels=[1]), 0)
        assert clf.predict(none).shape == (0, N_LABELS)
        assert clf.predict_labels(none) == []
    classes = fitted("y")
    assert classes.predict(data.X[:0]).shape == (0,)
    assert classes.predict(data.X[:0]).dtype == classes.classes_.dtype
    assert classes.predict_proba(data.X[:0]).shape == (0, 4)
    assert fitted("Y", "texts").predict_labels([]) == []


# --- multi-class -----------------------------------------------------------------------------------------------------


def test_rows_of_classes_sum_to_one_and_come_dense(fitted, data):
    clf = fitted("y")
    assert clf.is_multiclass_
    dense = clf.predict_proba(data.X)
    assert isinstance(dense, np.ndarray)
    assert dense.shape == (data.X.shape[0], 4)
    np.testing.assert_allclose(dense.sum(axis=1), 1, atol=1e-5)
    answer = clf.predict_proba(data.X, threshold=0.0)
    check_form(answer, data.X.shape[0], 4)
    np.testing.assert_array_equal(answer.toarray(), dense)


def test_separable_classes_are_learned(make):
    generator = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = generator.normal(np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3]])[y], 0.5)
    for classes in (np.arange(3), np.array(["a", "b", "c"])):
        clf = make().fit(X, classes[y])
        assert clf.score(X, classes[y]) > 0.95
        np.testing.assert_array_equal(clf.predict_proba(X).argmax(axis=1), np.searchsorted(classes, clf.predict(X)))


@pytest.mark.parametrize("kind", ["int", "negative", "str", "object", "bool", "float"])
def test_predict_gives_the_classes_themselves(make, data, kind):
    classes = {
        "int": np.array([10, 20, 30, 40]),
        "negative": np.array([-5, -1, 0, 3]),
        "str": np.array(["a, b", "ä", "ö", "ü"]),
        "object": np.array(["a", "b", "c", "d"], dtype=object),
        "bool": np.array([False, False, True, True]),
        "float": np.array([0.0, 1.0, 2.0, 3.0]),
    }[kind]
    y = classes[data.y]
    clf = make().fit(data.X, y)
    assert clf.classes_.dtype == y.dtype
    np.testing.assert_array_equal(clf.classes_, np.unique(y))
    predicted = clf.predict(data.X)
    assert predicted.dtype == y.dtype
    np.testing.assert_array_equal(predicted, clf.classes_[clf.predict_proba(data.X).argmax(axis=1)])
    assert clf.score(data.X, y) == np.mean(predicted == y)
    assert clf.predict_labels(data.X[:1], top_k=1)[0][0][0] == predicted[0]


# --- small and odd data ----------------------------------------------------------------------------------------------


def test_one_row_and_one_label_are_enough_to_train(make, data):
    for Y in (np.array([[1]]), [["only, one"]], np.array(["c"])):
        clf = make().fit(data.X[:1], Y)
        assert clf.n_labels_ == 1
        (pairs,) = clf.predict_labels(data.X[:1])
        assert pairs[0][0] == clf.classes_[0]
        assert 0 <= pairs[0][1] <= 1


def test_one_class_is_certain(make, data):
    clf = make().fit(data.X, np.full(data.X.shape[0], "same"))
    assert (clf.predict(data.X) == "same").all()
    np.testing.assert_allclose(clf.predict_proba(data.X), 1, atol=1e-6)


def test_a_column_without_examples_keeps_its_place(make, data):
    Y = sparse.hstack([sparse.csr_array((data.X.shape[0], 2)), data.Y, sparse.csr_array((data.X.shape[0], 1))]).tocsr()
    clf = make().fit(data.X, Y)
    answer = clf.predict_proba(data.X, threshold=0.0)
    check_form(answer, data.X.shape[0], N_LABELS + 3)
    assert clf.predict(data.X)[:, [0, 1, N_LABELS + 2]].nnz == 0


def test_rows_without_labels_lower_the_probabilities(make_multilabel, data):
    kept = np.flatnonzero(data.Y.sum(axis=1) > 0)
    with_rows = make_multilabel().fit(
        sparse.vstack([data.X[kept]] * 2), sparse.vstack([data.Y[kept], data.Y[kept] * 0])
    )
    without = make_multilabel().fit(data.X[kept], data.Y[kept])
    total = [clf.predict_proba(data.X, threshold=0.0).sum() for clf in (with_rows, without)]
    assert total[0] < 0.8 * total[1]


def test_only_rows_without_labels_and_known_columns_are_enough_to_train(make_multilabel, data):
    clf = make_multilabel().fit(data.X, data.Y * 0)
    assert clf.predict(data.X).nnz == 0
    check_form(clf.predict_proba(data.X, top_k=2), data.X.shape[0])


def test_one_feature_and_rows_without_any_feature_are_enough_to_train(make, data):
    check_form(make().fit(data.X[:, [0]], data.Y).predict_proba(data.X[:, [0]]), data.X.shape[0])
    check_form(make().fit(data.X * 0, data.Y).predict_proba(data.X), data.X.shape[0])


def test_score_is_the_share_of_rows_that_are_entirely_right(fitted, data):
    clf = fitted("collections")
    truth = np.array([set(labels) for labels in data.collections])
    predicted = clf.predict(data.X)
    names = [{clf.classes_[column] for column in predicted[[row]].indices} for row in range(predicted.shape[0])]
    right = np.array([one == other for one, other in zip(truth, names, strict=True)])
    assert clf.score(data.X, data.collections) == pytest.approx(right.mean())
    assert clf.score(data.X, [[*labels, "unknown"] for labels in data.collections]) == 0
    weight = np.arange(1, len(right) + 1)
    assert clf.score(data.X, data.collections, sample_weight=weight) == pytest.approx(np.average(right, weights=weight))


def test_models_of_one_class_refuse_rows_with_none_or_several(make_one_class):
    data = make_data(one_class=True)
    several, none = data.Y.toarray(), data.Y.toarray()
    several[3, :2] = 1
    none[5] = 0
    clf = make_one_class().fit(data.X, data.Y)
    before = clf.predict_proba(data.X)
    for Y, said in ((several, r"row 3 of Y has [23] labels"), (none, "row 5 of Y has no label")):
        with pytest.raises(ValueError, match=f"{type(clf).__name__} learns exactly one class per row, but {said}"):
            make_one_class().fit(data.X, Y)
        for learn in (clf.fit, getattr(clf, "partial_fit", clf.fit)):
            with pytest.raises(ValueError, match=said):
                learn(data.X, Y)
    assert same(clf.predict_proba(data.X), before)
