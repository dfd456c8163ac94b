"""Where raw files are kept, how they get there, and whether they are the genuine ones."""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from kuramotognn.data.errors import DataError

Progress = Callable[[str, int, int | None], None]
"""Told of a download: the file, the bytes that are there, the bytes in all if known."""

ATTEMPTS = 4
FIRST_PAUSE = 1.0
TIMEOUT = 30.0
CHUNK = 1 << 16

_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)


@dataclass(frozen=True)
class RawFile:
    """One file of a data set.

    Attributes:
        path: where it is kept, relative to the data root.
        url: where it comes from.
        sha256: its checksum, if one is known.
        git_blob: the id git gives its content, if that is what is known.
    """

    path: str
    url: str
    sha256: str | None = None
    git_blob: str | None = None

    def is_genuine(self, content: bytes) -> bool | None:
        """Whether the content is the published one; None if no checksum is known."""
        if self.sha256 is not None:
            return hashlib.sha256(content).hexdigest() == self.sha256
        if self.git_blob is not None:
            return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == self.git_blob
        return None


def data_root() -> Path:
    """The folder of raw files: ``KURAMOTOGNN_DATA``, or the platform's place for caches."""
    if chosen := os.environ.get("KURAMOTOGNN_DATA"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "kuramotognn" / "data"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kuramotognn"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kuramotognn"


def offline() -> bool:
    """Whether downloads are forbidden: ``KURAMOTOGNN_OFFLINE`` is set and not 0."""
    return os.environ.get("KURAMOTOGNN_OFFLINE", "0") not in ("", "0")


@contextmanager
def reporting(progress: Progress) -> Iterator[None]:
    """Tell ``progress`` of the downloads that happen inside."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


def read_raw(file: RawFile, root: Path, *, offline: bool, accept: Callable[[bytes], bool] | None = None) -> bytes:
    """The content of a raw file, downloaded if it is not there and verified in any case.

    Args:
        file: which one.
        root: the data root.
        offline: whether downloads are forbidden.
        accept: recognises genuine content in other bytes than the published ones.

    Raises:
        DataError: the file is not there and cannot be had, or is not the genuine one; such a file is set aside.
    """
    path = root / file.path
    if not path.exists():
        if offline:
            raise DataError(f"{path} is not there and downloads are switched off; get {file.url} and put it there")
        download(file, root)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if file.is_genuine(content) is False and not (accept and accept(content)):
        aside = _set_aside(path, path)
        raise DataError(
            f"{path} is not the published file (its checksum differs); {aside}; run again to download it, "
            f"or put {file.url} there"
        )
    return content


def download(file: RawFile, root: Path) -> None:
    """Fetch a file into the data root: to a temporary file, verified, then renamed.

    Transient failures are tried again after a pause that doubles. A file with a wrong checksum is kept beside its
    place as ``.rejected`` and never used.
    """
    path = root / file.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise DataError(
            f"{path.parent} cannot be written to ({error.strerror}); choose a data root of your own with --data-root "
            "or KURAMOTOGNN_DATA"
        ) from error
    os.close(handle)
    temporary = Path(name)
    try:
        _fetch_with_retries(file, temporary)
        content = temporary.read_bytes()
        if file.is_genuine(content) is False:
            aside = _set_aside(temporary, path)
            raise DataError(f"what {file.url} sent is not the published file (its checksum differs); {aside}")
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}; make room and run again") from error
    finally:
        temporary.unlink(missing_ok=True)


def _fetch_with_retries(file: RawFile, temporary: Path) -> None:
    for attempt in range(ATTEMPTS):
        try:
            return _fetch(file, temporary)
        except urllib.error.HTTPError as error:
            reason = f"the server answered {error.code} {error.reason}"
            if error.code < 500 and error.code != 429:
                break
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt + 1 < ATTEMPTS:
            time.sleep(FIRST_PAUSE * 2**attempt)
    raise DataError(
        f"{file.url} cannot be downloaded: {reason}; get it by other means and put it in "
        f"{temporary.parent / Path(file.path).name}"
    )


def _fetch(file: RawFile, temporary: Path) -> None:
    report, name = _progress.get(), Path(file.path).name
    with urllib.request.urlopen(file.url, timeout=TIMEOUT) as response, temporary.open("wb") as out:
        length = response.headers.get("Content-Length")
        total, done = int(length) if length and length.isdigit() else None, 0
        while chunk := response.read(CHUNK):
            out.write(chunk)
            done += len(chunk)
            if report:
                report(name, done, total)
        if total is not None and done != total:
            raise http.client.IncompleteRead(b"", total - done)
        out.flush()
        os.fsync(out.fileno())


def _set_aside(wrong: Path, place: Path) -> str:
    rejected = place.with_name(f"{place.name}.rejected")
    try:
        wrong.replace(rejected)
    except OSError:
        return "it is not used"
    return f"it was set aside as {rejected.name} and is not used"
