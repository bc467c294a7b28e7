"""Whether two fitted label trees are the same, bit for bit."""


def check_same_model(one, other):
    """Schema, trees, settings and weights."""
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.n_features_in_ == other.n_features_in_
    assert one.seed_ == other.seed_
    assert len(one.trees_) == len(other.trees_)
    for tree, other_tree in zip(one.trees_, other.trees_, strict=True):
        values, arrays = tree.state()
        other_values, other_arrays = other_tree.state()
        assert values == other_values
        assert arrays.keys() == other_arrays.keys()
        for name, array in arrays.items():
            assert array.dtype == other_arrays[name].dtype, name
            assert array.tobytes() == other_arrays[name].tobytes(), name
