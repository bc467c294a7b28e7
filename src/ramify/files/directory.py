"""The directory of a model: a manifest, and the arrays it names; replaced as a whole or not at all.

Data files never change once written, and each save gives them a new name. The manifest is put in place last, by one
rename: a save that is killed before it leaves the old model, a reader after it finds the new one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import mmap
import os
import re
import stat
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from numpy.typing import NDArray

from ramify.files.tensors import TensorFileError, read_tensors, write_tensors

FORMAT = "ramify-model"
FORMAT_VERSION = 8
OLDEST_VERSION = 2
MANIFEST = "manifest.json"
MAX_MANIFEST = 16 * 1024 * 1024
# Reading every byte of a large model would defeat the memory map; sizes are checked in any case.
VERIFIED_UP_TO = 64 * 1024 * 1024

_DATA_NAME = re.compile(r"arrays-[0-9a-f]{32}\.safetensors")
_TEMPORARY_NAME = re.compile(r"\.manifest-[0-9a-f]{32}\.tmp")
_ATTEMPTS = 200


class ModelFileError(ValueError):
    """A model cannot be saved or loaded; says what, which file, and what to do."""


def write_model(path: str | os.PathLike[str], content: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Replace what the directory holds by this manifest content and these arrays."""
    if not os.fspath(path):
        raise ModelFileError("the path to save to is empty: name a directory, or '.' for the current one")
    directory = _make_directory(Path(path))
    unique = uuid.uuid4().hex
    data, temporary = directory / f"arrays-{unique}.safetensors", directory / f".manifest-{unique}.tmp"
    with _alone(directory):
        current = _current_data(directory)
        if current is not None:
            _sweep(directory, keep=current)
        try:
            size, checksum = _write_durably(data, lambda file: write_tensors(file, arrays))
            entry = {"name": data.name, "size": size, "crc32": f"{checksum:08x}"}
            manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, **content, "files": [entry]}
            manifest["checksum"] = _manifest_checksum(manifest)
            text = json.dumps(manifest, indent=1, allow_nan=False, ensure_ascii=False).encode("utf-8", "surrogatepass")
            _write_durably(temporary, lambda file: file.write(text))
            os.replace(temporary, directory / MANIFEST)
            sync_directory(directory)
        except BaseException as error:
            if _current_data(directory) != {data.name}:
                data.unlink(missing_ok=True)
            temporary.unlink(missing_ok=True)
            if isinstance(error, OSError) and error.errno is not None:  # such as a full disk
                said = f"{error.strerror}; what was saved there before is unchanged"
                raise OSError(error.errno, said, str(directory)) from error
            raise
        _sweep(directory, keep={data.name})


def read_model(
    path: str | os.PathLike[str], verify: bool | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The manifest and the arrays, memory-mapped and read-only.

    `verify`: compare the content with its checksum; None does so up to 64 MB.
    """
    directory = Path(path)
    manifest, text = _read_manifest(directory)
    for _ in range(_ATTEMPTS):
        try:
            arrays: dict[str, NDArray[Any]] = {}
            for entry in manifest["files"]:
                arrays.update(_map_arrays(directory / entry["name"], entry, verify))
            return manifest, arrays
        except FileNotFoundError as error:
            # Another process may have replaced the model between the two files; then the manifest has changed.
            manifest, again = _read_manifest(directory)
            if again == text:
                raise ModelFileError(
                    f"{error.filename} is missing, although {directory / MANIFEST} names it: "
                    "copy the whole directory again"
                ) from None
            text = again
            time.sleep(0.001)
    raise ModelFileError(f"{directory} is being replaced all the time: try again when no process is saving to it")


# --- writing ---------------------------------------------------------------------------------------------------------


def _make_directory(directory: Path) -> Path:
    try:
        if not directory.is_dir():
            directory.mkdir(parents=True, exist_ok=True)
            sync_directory(directory.parent)  # else a power cut could take the whole directory
    except (FileExistsError, NotADirectoryError):
        raise ModelFileError(
            f"{directory} cannot be a model directory: a file is in the way; choose another name"
        ) from None
    except PermissionError:
        raise ModelFileError(f"{directory} cannot be made: no permission to write there") from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ModelFileError(f"no permission to write to {directory}")
    return directory


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One save at a time; the lock ends with the process."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EBADF, errno.EINVAL):  # some network drives
                raise
        yield
    finally:
        os.close(descriptor)


def _current_data(directory: Path) -> set[str] | None:
    """The data files of the model in place: none yet is the empty set, None if its manifest cannot be read."""
    if not os.path.lexists(directory / MANIFEST):
        return set()
    try:
        manifest, _ = _read_manifest(directory)
    except ModelFileError as error:
        if "is not a ramify model" in str(error) or "newer" in str(error):
            raise ModelFileError(f"will not overwrite: {error}") from None
        return None
    return {entry["name"] for entry in manifest["files"]}


def _sweep(directory: Path, keep: set[str]) -> None:
    """Remove files that earlier or killed saves left behind, and no others."""
    for entry in os.scandir(directory):
        if entry.name not in keep and (_DATA_NAME.fullmatch(entry.name) or _TEMPORARY_NAME.fullmatch(entry.name)):
            with contextlib.suppress(FileNotFoundError, IsADirectoryError, PermissionError):
                os.unlink(entry.path)


def _write_durably(path: Path, write: Callable[[BinaryIO], Any]) -> Any:
    with open(path, "xb") as file:
        result = write(file)
        file.flush()
        os.fsync(file.fileno())
    return result


def sync_directory(directory: Path) -> None:
    """Bring the names of new and renamed files to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # not every file system can; the rename itself is in order
        pass
    finally:
        os.close(descriptor)


def _manifest_checksum(manifest: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"{zlib.crc32(text.encode()):08x}"


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_manifest(directory: Path) -> tuple[dict[str, Any], bytes]:
    path = directory / MANIFEST
    try:
        descriptor = _open_plain(path)
    except FileNotFoundError:
        _refuse_missing(directory)
    except NotADirectoryError:
        raise ModelFileError(f"{directory} is a file{_guess(directory)}; a ramify model is a directory") from None
    with open(descriptor, "rb") as file:
        text = file.read(MAX_MANIFEST + 1)
    if len(text) > MAX_MANIFEST:
        raise ModelFileError(f"{path} is larger than any manifest ({MAX_MANIFEST} bytes): is it a ramify model?")
    try:
        manifest = json.loads(text.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise ModelFileError(f"{path} is nested too deeply: it was damaged or made to break loading") from None
    except ValueError as error:
        raise ModelFileError(f"{path} is not JSON ({error}): copy the whole directory again") from None
    return _check_manifest(path, manifest), text


def _refuse_missing(directory: Path) -> NoReturn:
    if not os.path.lexists(directory):
        raise ModelFileError(f"there is no model at {directory}: nothing by that name exists") from None
    raise ModelFileError(
        f"there is no model in {directory}: it has no {MANIFEST}; give the directory that save() was given"
    ) from None


def _guess(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            start = file.read(4)
    except OSError:
        return ""
    if start[:2] == b"PK":
        return " (a zip archive: unpack it first)"
    if start[:2] == b"\x1f\x8b":
        return " (gzip: unpack it first)"
    if start[:1] == b"\x80":
        return " (a pickle, which ramify never loads)"
    return ""


def _check_manifest(path: Path, manifest: Any) -> dict[str, Any]:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a ramify model: its format is not {FORMAT!r}")
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{path} has the impossible format version {version!r}: copy the whole directory again")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, newer than this library knows ({FORMAT_VERSION}): upgrade ramify"
        )
    if version < OLDEST_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, which only older libraries read "
            f"(this one reads {OLDEST_VERSION} to {FORMAT_VERSION}): train the model again"
        )
    try:
        is_sound = manifest.get("checksum") == _manifest_checksum(manifest)
    except (ValueError, RecursionError):
        is_sound = False
    if not is_sound:
        raise ModelFileError(
            f"{path} was changed after it was saved (its checksum differs): copy the whole directory again"
        )
    files = manifest.get("files")
    if not isinstance(files, list) or not all(map(_is_file_entry, files)):
        raise ModelFileError(f"{path} names files that no ramify model has: it was damaged or made to break loading")
    return manifest


def _is_file_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and _DATA_NAME.fullmatch(entry["name"]) is not None  # so it has no slash: nothing outside is ever opened
        and type(entry.get("size")) is int
        and isinstance(entry.get("crc32"), str)
    )


def _open_plain(path: Path) -> int:
    """Open a regular file; no link, no pipe that would block."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags)
    except PermissionError:
        raise ModelFileError(f"no permission to read {path}") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ModelFileError(
                f"{path} is a symbolic link, which is not followed: copy the file itself there"
            ) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ModelFileError(f"{path} is not a regular file")
    return descriptor


def _map_arrays(path: Path, entry: Mapping[str, Any], verify: bool | None) -> dict[str, NDArray[Any]]:
    descriptor = _open_plain(path)
    try:
        size = os.fstat(descriptor).st_size
        if size != entry["size"]:
            what = "truncated" if size < entry["size"] else "too long"
            raise ModelFileError(
                f"{path} is {what}: it has {size} bytes instead of {entry['size']}; copy the whole directory again"
            )
        if size == 0:
            raise ModelFileError(f"{path} is empty: copy the whole directory again")
        buffer = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
    is_verified = size <= VERIFIED_UP_TO if verify is None else verify
    if is_verified and f"{zlib.crc32(buffer):08x}" != entry["crc32"]:
        raise ModelFileError(f"{path} is damaged (its checksum differs): copy the whole directory again")
    try:
        return read_tensors(buffer)
    except TensorFileError as error:
        raise ModelFileError(f"{path} is not a model's array file: {error}") from None
