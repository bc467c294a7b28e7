"""Model files: what they hold, how they are replaced, and what is said when something is wrong."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from frequency_classifier import FrequencyClassifier
from model_files import X, Y, data_file, write_manifest
from ramify.base import save_load as persist
from ramify.data.names import NameTable
from ramify.files import directory as model_directory
from ramify.files import packing
from ramify.files.directory import ModelFileError
from ramify.files.tensors import ALIGNMENT, read_tensors, write_tensors
from ramify.trees import LabelTree


def edit_manifest(directory, change):
    """Change the manifest and write the right checksum."""
    manifest = json.loads((directory / "manifest.json").read_text())
    change(manifest)
    write_manifest(directory, manifest)


# --- arrays ----------------------------------------------------------------------------------------------------------

array_types = st.sampled_from(["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"])
arrays = st.dictionaries(
    st.text(min_size=1, max_size=8).filter(lambda name: not name.startswith(("pad.", "__"))),
    array_types.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0))),
    max_size=5,
)


@given(arrays)
def test_arrays_come_back_bit_for_bit_aligned_and_as_the_safetensors_package_reads_them(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("arrays") / "file.safetensors"
    with open(path, "wb") as file:
        size, _ = write_tensors(file, content)
    assert path.stat().st_size == size
    again = read_tensors(path.read_bytes())
    peer = safetensors.numpy.load_file(path)
    assert again.keys() == content.keys()
    for name, array in content.items():
        for other in (again[name], peer[name]):
            assert other.dtype == array.dtype
            assert other.shape == array.shape
            assert other.tobytes() == array.tobytes()


@given(arrays)
def test_files_of_the_safetensors_package_are_read(content):
    content = {name: np.ascontiguousarray(array) for name, array in content.items()}
    again = read_tensors(safetensors.numpy.save(content))
    assert {name: array.tobytes() for name, array in again.items()} == {
        name: array.tobytes() for name, array in content.items()
    }


def test_arrays_begin_at_multiples_of_a_cache_line_and_are_read_only_views(saved):
    _, content = model_directory.read_model(saved)
    for array in content.values():
        assert array.ctypes.data % ALIGNMENT == 0
        assert not array.flags.writeable
        assert not array.flags.owndata


def test_arrays_of_objects_and_names_of_the_format_are_refused(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        with pytest.raises(TypeError, match="dtype object"):
            write_tensors(file, {"a": np.array([{}])})
        with pytest.raises(ValueError, match="may not be called"):
            write_tensors(file, {"__metadata__": np.zeros(1)})


@given(st.lists(st.text()))
def test_names_come_back_one_by_one_and_all_together(names):
    table = NameTable.from_names(names)
    assert table.tolist() == names
    assert table.take(range(len(names))) == names
    assert NameTable(table.text, table.offsets).tolist() == names


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 2, 1, 3], [0, -1, 3]])
def test_offsets_that_do_not_fit_the_text_are_refused(offsets):
    with pytest.raises(ValueError, match="offsets"):
        NameTable(np.frombuffer(b"abc", np.uint8), np.array(offsets, np.int64))


# --- values ----------------------------------------------------------------------------------------------------------

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text().filter(lambda key: not key.startswith("$")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_values_come_back_through_json(value):
    store: dict[str, np.ndarray] = {}
    packed = json.loads(json.dumps(packing.pack(value, "value", store), allow_nan=False))
    assert repr(packing.unpack(packed, store)) == repr(value)


def test_arrays_strings_and_trees_come_back():
    tree = LabelTree(parent=[-1, 0, 0], label=[-1, 0, 1])
    value = {
        "numbers": np.arange(3, dtype=np.int16),
        "words": np.array(["ab", "ü"]),
        "objects": np.array(["ab", "ü"], dtype=object),
        "many": [str(number) for number in range(100)],
        "tree": tree,
        "scalars": [np.float32(0.5), np.int8(3), np.bool_(True), np.str_("x")],
    }
    store: dict[str, np.ndarray] = {}
    again = packing.unpack(json.loads(json.dumps(packing.pack(value, "value", store))), store)
    for name in ("numbers", "words", "objects"):
        assert again[name].dtype == value[name].dtype
        assert again[name].tolist() == value[name].tolist()
    assert again["many"] == value["many"]
    assert again["scalars"] == [0.5, 3, True, "x"]
    assert again["tree"].parent.tolist() == tree.parent.tolist()
    assert again["tree"].n_labels == 2


@pytest.mark.parametrize(
    "value", [lambda x: x, object(), {1: 2}, {"$a": 1}, np.array([1j]), sparse.eye_array(2), {"a"}]
)
def test_values_that_only_code_could_make_are_refused_by_name(value):
    with pytest.raises(ModelFileError, match=r"parameters\.tree is a"):
        packing.pack(value, "parameters.tree", {})


def test_a_parameter_that_is_code_is_replaced_by_what_it_led_to(tmp_path):
    clf = FrequencyClassifier(smoothing=lambda: 0.5, random_state=np.random.RandomState(3))
    clf.smoothing = 0.5
    clf.fit(X, Y)
    clf.smoothing, clf.smoothing_ = (lambda: 0.5), 0.5
    clf.save(tmp_path / "model")
    assert persist.load(tmp_path / "model").get_params() == {
        **clf.get_params(),
        "smoothing": 0.5,
        "random_state": clf.seed_,
    }
    del clf.smoothing_
    with pytest.raises(ModelFileError, match=r"parameters\.smoothing is a function"):
        clf.save(tmp_path / "model")
    assert persist.load(tmp_path / "model").smoothing == 0.5  # what was there is still there


def test_classes_of_others_are_not_saved(tmp_path):
    class Own(FrequencyClassifier):
        pass

    with pytest.raises(ModelFileError, match=r"Own is not one of the library's own classifiers.*pickle"):
        Own().fit(X, Y).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


# --- the directory ---------------------------------------------------------------------------------------------------


def test_a_second_save_leaves_one_manifest_and_one_data_file(saved):
    (saved / "notes.txt").write_text("mine")
    first = data_file(saved)
    FrequencyClassifier(smoothing=0.5).fit(X, Y).save(saved)
    assert sorted(os.listdir(saved)) == sorted(["manifest.json", "notes.txt", data_file(saved).name])
    assert data_file(saved) != first
    assert persist.load(saved).smoothing == 0.5


def test_leftovers_of_killed_saves_are_swept_by_the_next(saved):
    (saved / f"arrays-{'0' * 32}.safetensors").write_bytes(b"half")
    (saved / f".manifest-{'0' * 32}.tmp").write_bytes(b"{")
    assert persist.load(saved).n_labels_ == 3
    FrequencyClassifier().fit(X, Y).save(saved)
    assert len(os.listdir(saved)) == 2


def test_a_save_that_fails_leaves_the_old_model_and_no_traces(saved, monkeypatch):
    before = sorted(os.listdir(saved))

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_directory.os, "replace", full)
    with pytest.raises(OSError, match=r"No space left .* saved there before is unchanged: '.*model'"):
        FrequencyClassifier(smoothing=0.5).fit(X, Y).save(saved)
    assert sorted(os.listdir(saved)) == before
    assert persist.load(saved).smoothing == 0.0


def test_a_broken_model_may_be_replaced_but_a_foreign_one_not(saved):
    (saved / "manifest.json").write_text("{")
    FrequencyClassifier(smoothing=0.5).fit(X, Y).save(saved)
    assert persist.load(saved).smoothing == 0.5
    assert len(os.listdir(saved)) == 2
    (saved / "manifest.json").write_text('{"format": "something else"}')
    with pytest.raises(ModelFileError, match=r"will not overwrite.*is not a ramify model"):
        FrequencyClassifier().fit(X, Y).save(saved)


def test_parents_of_the_directory_are_made_and_a_file_in_the_way_is_named(tmp_path):
    FrequencyClassifier().fit(X, Y).save(tmp_path / "deep" / "er" / "model")
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(ModelFileError, match="a file is in the way"):
            FrequencyClassifier().fit(X, Y).save(path)


def test_the_manifest_is_json_that_a_person_can_read(saved):
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest["class"] == "FrequencyClassifier"
    assert manifest["parameters"] == {"n_jobs": None, "random_state": None, "smoothing": 0.0, "vectorizer": None}
    assert manifest["files"][0]["size"] == data_file(saved).stat().st_size


def test_a_saved_model_has_the_permissions_of_the_umask(saved):
    allowed = 0o666 & ~current_umask()
    assert {stat.S_IMODE(path.stat().st_mode) for path in saved.iterdir()} == {allowed}


def current_umask():
    umask = os.umask(0)
    os.umask(umask)
    return umask


def test_a_reader_that_meets_a_replacing_saver_reads_again(saved, monkeypatch):
    inner, clf = model_directory._map_arrays, FrequencyClassifier(smoothing=0.25).fit(X, Y)
    calls = []

    def replaced_in_between(path, entry, verify):
        if not calls:
            clf.save(saved)
        calls.append(path)
        return inner(path, entry, verify)

    monkeypatch.setattr(model_directory, "_map_arrays", replaced_in_between)
    assert persist.load(saved).smoothing == 0.25
    assert len(calls) == 2


# --- what is said of broken models -----------------------------------------------------------------------------------


def test_nothing_there(tmp_path):
    with pytest.raises(ModelFileError, match=r"there is no model at .*nowhere: nothing by that name exists"):
        persist.load(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match=r"it has no manifest\.json; give the directory that save\(\) was given"):
        persist.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04", "a zip archive: unpack it first"),
        (b"\x80\x04\x95", "a pickle, which ramify never loads"),
        (b"\x1f\x8b\x08", "gzip: unpack it first"),
        (b"n d m", "is a file; a ramify model is a directory"),
    ],
)
def test_a_file_instead_of_a_directory(tmp_path, content, said):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match=said):
        persist.load(tmp_path / "model")


def test_a_newer_format_says_to_upgrade(saved):
    edit_manifest(saved, lambda manifest: manifest.update(format_version=9))
    with pytest.raises(ModelFileError, match=r"manifest\.json has format version 9, newer .*upgrade ramify"):
        persist.load(saved)
    with pytest.raises(ModelFileError, match="will not overwrite"):
        FrequencyClassifier().fit(X, Y).save(saved)


def test_an_older_format_says_to_train_again(saved):
    edit_manifest(saved, lambda manifest: manifest.update(format_version=1))
    with pytest.raises(
        ModelFileError, match=r"format version 1, which only older libraries read .*train the model again"
    ):
        persist.load(saved)


def test_a_class_the_library_does_not_have_is_never_imported(saved):
    for name in ("os.system", "NewClassifier", "LogisticRegression", None, 3, ["PLTClassifier"]):
        edit_manifest(saved, lambda manifest, name=name: manifest.update({"class": name}))
        with pytest.raises(ModelFileError, match=r"which ramify .* does not have"):
            persist.load(saved)


def test_a_missing_data_file_is_named(saved):
    path = data_file(saved)
    path.unlink()
    with pytest.raises(ModelFileError, match=f"{path.name} is missing.*copy the whole directory again"):
        persist.load(saved)


def test_a_file_without_permission_is_named(saved, monkeypatch):
    inner = os.open

    def forbidden(path, *rest, **named):
        if str(path).endswith("manifest.json"):
            raise PermissionError(13, "Permission denied")
        return inner(path, *rest, **named)

    monkeypatch.setattr(model_directory.os, "open", forbidden)
    with pytest.raises(ModelFileError, match=r"no permission to read .*manifest\.json"):
        persist.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.pop("parameters"),
        lambda manifest: manifest.update(parameters=[]),
        lambda manifest: manifest.update(parameters={"no_such_parameter": 1}),
        lambda manifest: manifest.pop("fitted"),
        lambda manifest: manifest["fitted"]["schema"].pop("labels"),
        lambda manifest: manifest["fitted"]["schema"].update(n_features=-1),
        lambda manifest: manifest["fitted"]["schema"].update(n_features="many"),
        lambda manifest: manifest["fitted"]["schema"].update(labels={"kind": "collections", "n_labels": 4}),
        lambda manifest: manifest["fitted"]["schema"]["labels"].update(n_labels=4),
        lambda manifest: manifest["fitted"]["schema"]["labels"].update(dtype="<U99999999999"),
        lambda manifest: manifest["fitted"]["schema"]["labels"].update(dtype="S"),
        lambda manifest: manifest["fitted"]["schema"]["labels"].update(classes={"$names": "nowhere"}),
        lambda manifest: manifest["fitted"]["schema"]["labels"].update(classes={"$names": ["a"]}),
        lambda manifest: manifest["fitted"]["schema"].update(vectorizer={"class": "os"}),
        lambda manifest: manifest["fitted"]["schema"].update(vectorizer={"$tuple": [{"class": "os"}, {}]}),
        lambda manifest: manifest["fitted"].pop("schema"),
        lambda manifest: manifest["fitted"].update(seed=-1),
        lambda manifest: manifest["fitted"].update(options=3),
        lambda manifest: manifest["fitted"].update(thresholds=[0.5]),
        lambda manifest: manifest["model"].pop("values"),
        lambda manifest: manifest["model"]["values"].update(n_features=3),
        lambda manifest: manifest["model"]["values"].update(is_multiclass="no"),
        lambda manifest: manifest["model"].update(arrays={}),
        lambda manifest: manifest["model"].update(arrays={"frequency": {"$array": "nowhere"}}),
        lambda manifest: manifest["model"].update(arrays={"frequency": {"$code": "print(1)"}}),
        lambda manifest: manifest["model"].update(arrays={"frequency": {"$tuple": 3}}),
        lambda manifest: manifest["model"].update(arrays={"frequency": {"$float": []}}),
        lambda manifest: manifest["model"].update(arrays={"frequency": {"$tree": "x", "n_labels": 3}}),
    ],
)
def test_a_manifest_that_is_sound_json_but_no_sound_model_is_refused(saved, change):
    edit_manifest(saved, change)
    with pytest.raises(ModelFileError):
        persist.load(saved)
