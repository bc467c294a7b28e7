"""Files made to break loading: each must be refused with an error that names it, and nothing worse may happen."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frequency_classifier import FrequencyClassifier
from model_files import X, Y, data_file, write_manifest
from ramify import PLTClassifier
from ramify.base import save_load as persist
from ramify.files import directory as model_directory
from ramify.files.directory import ModelFileError
from ramify.files.tensors import MAX_HEADER, TensorFileError, read_tensors


def replace_data(directory, content):
    """Put other bytes in place of the arrays, with a manifest that vouches for them."""
    data_file(directory).write_bytes(content)
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest["files"][0].update(size=len(content), crc32=f"{model_directory.zlib.crc32(content):08x}")
    write_manifest(directory, manifest)


def tensor_file(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(dtype="U8", shape=(4,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


HOSTILE = {
    "nothing": b"",
    "seven bytes": b"\0" * 7,
    "no header": (0).to_bytes(8, "little"),
    "header longer than the file": (100).to_bytes(8, "little") + b"{}",
    "giant header": (2**63).to_bytes(8, "little") + b"{}",
    "largest header": b"\xff" * 8 + b"{}",
    "header above the limit": (MAX_HEADER + 1).to_bytes(8, "little") + b" " * (MAX_HEADER + 1),
    "no JSON": tensor_file(b"{'a': 1}"),
    "not UTF-8": tensor_file(b'{"\xff": 1}'),
    "a list": tensor_file([]),
    "a number": tensor_file(b"3"),
    "deep lists": tensor_file(b"[" * 200_000),
    "deep objects": tensor_file(b'{"a":' * 200_000),
    "a long number": tensor_file(b'{"a": {"dtype": "U8", "shape": [' + b"9" * 10_000 + b'], "data_offsets": [0, 0]}}'),
    "the same name twice": tensor_file(
        b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}',
        b"1234",
    ),
    "entry is a list": tensor_file({"a": [1, 2]}),
    "entry lacks its shape": tensor_file({"a": {"dtype": "U8", "data_offsets": [0, 0]}}),
    "entry with more": tensor_file({"a": {**entry(), "code": "import os"}}, b"1234"),
    "unknown dtype": tensor_file({"a": entry(dtype="F8_E4M3")}, b"1234"),
    "dtype of objects": tensor_file({"a": entry(dtype="O", shape=[1], offsets=[0, 8])}, b"12345678"),
    "dtype is a number": tensor_file({"a": entry(dtype=3)}, b"1234"),
    "dtype is a list": tensor_file({"a": entry(dtype=["U8"])}, b"1234"),
    "negative shape": tensor_file({"a": entry(shape=[-4])}, b"1234"),
    "two negative shapes": tensor_file({"a": entry(shape=[-2, -2])}, b"1234"),
    "fractional shape": tensor_file({"a": entry(shape=[4.0])}, b"1234"),
    "shape of booleans": tensor_file({"a": entry(shape=[True], offsets=[0, 1])}, b"1"),
    "shape is text": tensor_file({"a": {"dtype": "U8", "shape": "4", "data_offsets": [0, 4]}}, b"1234"),
    "shape that overflows to fit": tensor_file({"a": entry(shape=[2**32, 2**32], offsets=[0, 0])}),
    "huge shape": tensor_file({"a": entry(shape=[2**61], offsets=[0, 2**61])}),
    "huge shape of nothing": tensor_file({"a": entry(shape=[0, 2**61, 2**61], offsets=[0, 0])}),
    "a thousand dimensions": tensor_file({"a": entry(shape=[1] * 1000, offsets=[0, 1])}, b"1"),
    "shape larger than its bytes": tensor_file({"a": entry(shape=[5])}, b"1234"),
    "shape smaller than its bytes": tensor_file({"a": entry(shape=[3])}, b"1234"),
    "bytes that do not divide": tensor_file({"a": entry(dtype="F32", shape=[1], offsets=[0, 5])}, b"12345"),
    "negative offsets": tensor_file({"a": entry(offsets=[-4, 0])}, b"1234"),
    "offsets backwards": tensor_file({"a": entry(shape=[0], offsets=[4, 0])}, b"1234"),
    "three offsets": tensor_file({"a": entry(offsets=[0, 4, 8])}, b"1234"),
    "offsets of text": tensor_file({"a": entry(offsets=["0", "4"])}, b"1234"),
    "offsets beyond the end": tensor_file({"a": entry(shape=[8], offsets=[0, 8])}, b"1234"),
    "overlapping arrays": tensor_file({"a": entry(), "b": entry(offsets=[2, 6])}, b"123456"),
    "the same bytes twice": tensor_file({"a": entry(), "b": entry()}, b"1234"),
    "a gap": tensor_file({"a": entry(), "b": entry(offsets=[6, 10])}, b"1234567890"),
    "a gap at the start": tensor_file({"a": entry(offsets=[2, 6])}, b"123456"),
    "bytes after the end": tensor_file({"a": entry()}, b"12345"),
    "a pickle": pickle.dumps({"a": 1}),
    "a numpy file": b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_array_file_is_refused_and_named(saved, case):
    with pytest.raises(TensorFileError):
        read_tensors(HOSTILE[case])
    replace_data(saved, HOSTILE[case])
    with pytest.raises(ModelFileError, match=data_file(saved).name):
        persist.load(saved)


def test_a_file_truncated_anywhere_is_refused(saved):
    path = data_file(saved)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=f"{path.name} is truncated"):
            persist.load(saved)
        with pytest.raises(TensorFileError):
            read_tensors(whole[:length])
    path.write_bytes(whole + b"\0")
    with pytest.raises(ModelFileError, match="is too long"):
        persist.load(saved)


def test_a_manifest_truncated_anywhere_is_refused(saved):
    path = saved / "manifest.json"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=r"manifest\.json"):
            persist.load(saved)


flips = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7))
quietly = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)


def flip(content, where, bit):
    position = int(where * len(content))
    return content[:position] + bytes([content[position] ^ (1 << bit)]) + content[position + 1 :]


@quietly
@given(flips)
def test_a_flipped_bit_of_the_arrays_is_noticed(saved, change):
    path = data_file(saved)
    whole = path.read_bytes()
    path.write_bytes(flip(whole, *change))
    try:
        with pytest.raises(ModelFileError, match=path.name):
            persist.load(saved)
    finally:
        path.write_bytes(whole)


@quietly
@given(flips)
def test_a_flipped_bit_of_the_manifest_is_noticed_or_means_nothing(saved, change):
    path = saved / "manifest.json"
    whole = path.read_bytes()
    path.write_bytes(flip(whole, *change))
    try:
        loaded = persist.load(saved)
    except ModelFileError:
        pass
    else:  # white space
        assert loaded.predict_labels(X) == FrequencyClassifier().fit(X, Y).predict_labels(X)
    finally:
        path.write_bytes(whole)


@pytest.fixture(params=["frequency", "plt", "plt of texts"])
def saved_in_earnest(request, tmp_path):
    texts = [" ".join(labels) or "nothing" for labels in Y] * 20
    if request.param == "frequency":
        clf = FrequencyClassifier().fit(texts, Y * 20)
    elif request.param == "plt":
        clf = PLTClassifier(arity=2, max_leaf=2, random_state=0).fit(np.tile(X, (20, 1)), Y * 20)
    else:
        clf = PLTClassifier(arity=2, max_leaf=2, n_trees=2, random_state=0).fit(texts, Y * 20)
    clf.save(tmp_path / "model")
    return tmp_path / "model", X if request.param == "plt" else texts


@quietly
@given(flips)
def test_a_flipped_bit_that_the_checksum_vouches_for_raises_nothing_but_the_one_error(saved_in_earnest, change):
    directory, rows = saved_in_earnest
    path = data_file(directory)
    whole, manifest = path.read_bytes(), (directory / "manifest.json").read_bytes()
    replace_data(directory, flip(whole, *change))
    try:
        clf = persist.load(directory)
    except ModelFileError:
        return
    finally:
        path.unlink()  # and not written to: the loaded model still reads it
        path.write_bytes(whole)
        (directory / "manifest.json").write_bytes(manifest)
    for question in ({"top_k": 2}, {"threshold": 0.0}, {"threshold": np.full(3, 0.1)}):
        clf.predict_proba(rows, **question)
    try:
        clf.predict_labels(rows)
        clf.predict_proba(rows, labels=clf.classes_[:1])
    except ValueError as error:  # a label's name is read when it is asked for
        if "names in the file are damaged" not in str(error):
            raise


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"3",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"9" * 100_000,
        b'{"format": "ramify-model"}',
        b'{"format": "ramify-model", "format_version": 1}',
        b'{"format": "ramify-model", "format_version": 0}',
        b'{"format": "ramify-model", "format_version": true}',
        b'{"format": "ramify-model", "format_version": "1"}',
        b'{"format": "ramify-model", "format_version": NaN}',
        b'{"format": "ramify-model", "format_version": 1e999}',
        b'{"format": ["ramify-model"]}',
        b" " * (model_directory.MAX_MANIFEST + 1),
    ],
    ids=lambda text: repr(text[:40]),
)
def test_a_hostile_manifest_is_refused_and_named(saved, text):
    (saved / "manifest.json").write_bytes(text)
    with pytest.raises(ModelFileError, match=r"manifest\.json"):
        persist.load(saved)


NAMES = [
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    "",
    "manifest.json",
    "arrays-" + "0" * 32 + ".safetensors/../x",
    "../arrays-" + "0" * 32 + ".safetensors",
    "arrays-" + "0" * 32 + ".safetensors\n",
    "arrays-" + "0" * 32 + ".safetensors\0",
    "arrays-" + "０" * 32 + ".safetensors",
    None,
    3,
    ["arrays"],
]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_manifest_that_names_a_file_elsewhere_opens_nothing(saved, name, monkeypatch):
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["files"][0]["name"] = name
    write_manifest(saved, manifest)
    opened = []
    inner = os.open
    monkeypatch.setattr(model_directory.os, "open", lambda path, *rest: opened.append(str(path)) or inner(path, *rest))
    with pytest.raises(ModelFileError, match=r"manifest\.json names files that no ramify model has"):
        persist.load(saved)
    assert opened == [str(saved / "manifest.json")]


@pytest.mark.parametrize("files", [None, {}, "arrays", [None], [3], [{}], [[]]], ids=repr)
def test_a_manifest_whose_list_of_files_is_none_is_refused(saved, files):
    manifest = json.loads((saved / "manifest.json").read_text())
    manifest["files"] = files
    write_manifest(saved, manifest)
    with pytest.raises(ModelFileError, match="names files"):
        persist.load(saved)


def test_symbolic_links_are_not_followed(saved, tmp_path):
    path = data_file(saved)
    elsewhere = tmp_path / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(ModelFileError, match=f"{path.name} is a symbolic link"):
        persist.load(saved)
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(ModelFileError, match="symbolic link"):
        persist.load(saved)


def test_a_save_replaces_a_linked_manifest_and_not_what_it_points_to(saved, tmp_path):
    precious = tmp_path / "precious"
    shutil.move(saved / "manifest.json", precious)
    before = precious.read_bytes()
    (saved / "manifest.json").symlink_to(precious)
    with pytest.raises(ModelFileError, match="symbolic link"):
        persist.load(saved)
    FrequencyClassifier(smoothing=0.5).fit(X, Y).save(saved)
    assert precious.read_bytes() == before
    assert persist.load(saved).smoothing == 0.5


def test_a_link_to_the_whole_directory_is_a_users_own_and_followed(saved, tmp_path):
    (tmp_path / "latest").symlink_to(saved)
    assert persist.load(tmp_path / "latest").n_labels_ == 3


@pytest.mark.parametrize("which", ["manifest", "data"])
def test_pipes_and_directories_in_place_of_files_do_not_hang(saved, which):
    path = saved / "manifest.json" if which == "manifest" else data_file(saved)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ModelFileError, match="is not a regular file"):
        persist.load(saved)
    path.unlink()
    path.mkdir()
    with pytest.raises(ModelFileError, match="is not a regular file"):
        persist.load(saved)


class Bomb:
    """Unpickling it would leave a mark."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (open, (self.mark, "w"))


def test_a_pickle_is_never_run(saved, tmp_path):
    mark = tmp_path / "mark"
    bomb = pickle.dumps(Bomb(str(mark)))
    (tmp_path / "model.pkl").write_bytes(bomb)
    with pytest.raises(ModelFileError, match="a pickle, which ramify never loads"):
        persist.load(tmp_path / "model.pkl")
    replace_data(saved, bomb)
    with pytest.raises(ModelFileError):
        persist.load(saved)
    (saved / "manifest.json").write_bytes(bomb)
    with pytest.raises(ModelFileError):
        persist.load(saved)
    assert not mark.exists()


def test_a_zip_archive_is_recognised(saved, tmp_path):
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.write(saved / "manifest.json")
    with pytest.raises(ModelFileError, match="a zip archive: unpack it first"):
        persist.load(tmp_path / "model.zip")
