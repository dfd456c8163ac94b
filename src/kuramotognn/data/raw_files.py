"""The raw files of public data sets: where they are stored, how they are downloaded and verified."""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kuramotognn.atomic_write import write_atomically
from kuramotognn.data.data_error import DataError
from kuramotognn.data.file_bytes import home_expanded, read_regular

Progress = Callable[[str, int, int | None], None]
"""Called during a download with the file's name, the bytes read so far, and the total if it is known."""

ATTEMPTS = 4
FIRST_PAUSE = 1.0
TIMEOUT = 30.0
CHUNK = 1 << 16
LARGEST = 1 << 27
"""Bytes of a raw file; the largest of them, ogbn-arxiv's archive, has 83 million."""
SCHEMES = ("https",)
"""Schemes of addresses that are downloaded from, also after a redirection."""

_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)


@dataclass(frozen=True)
class RawFile:
    """One file of a data set.

    Attributes:
        path: path relative to the data root.
        url: where it is downloaded from.
        sha256: its SHA-256 checksum, if known.
        git_blob: its git blob id, if that is known instead.
        largest: bytes that it has at most.
    """

    path: str
    url: str
    sha256: str | None = None
    git_blob: str | None = None
    largest: int = LARGEST

    def is_genuine(self, content: bytes) -> bool | None:
        """Whether the content matches the checksum; None if no checksum is known."""
        if self.sha256 is not None:
            return hashlib.sha256(content).hexdigest() == self.sha256
        if self.git_blob is not None:
            return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == self.git_blob
        return None


def data_root() -> Path:
    """The folder of raw files: ``KURAMOTOGNN_DATA``, or the cache folder of the platform."""
    if chosen := os.environ.get("KURAMOTOGNN_DATA"):
        return home_expanded(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home_expanded("~/AppData/Local")) / "kuramotognn" / "data"
    if sys.platform == "darwin":
        return home_expanded("~/Library/Caches/kuramotognn")
    return Path(os.environ.get("XDG_CACHE_HOME") or home_expanded("~/.cache")) / "kuramotognn"


def offline() -> bool:
    """Whether downloads are forbidden: ``KURAMOTOGNN_OFFLINE`` is set and not 0."""
    return os.environ.get("KURAMOTOGNN_OFFLINE", "0") not in ("", "0")


@contextmanager
def reporting(progress: Progress) -> Iterator[None]:
    """Call ``progress`` during downloads inside the ``with`` block."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


def read_raw(file: RawFile, root: Path, *, offline: bool, accept: Callable[[bytes], bool] | None = None) -> bytes:
    """Read and verify a raw file; download it first if it is missing.

    Args:
        file: the file to read.
        root: the data root.
        offline: whether downloads are forbidden.
        accept: whether content with another checksum is accepted.

    Raises:
        DataError: the file is missing and cannot be downloaded, or its checksum is wrong; it is then renamed.
    """
    path = root / file.path
    if not path.exists():
        if offline:
            raise DataError(f"{path} is not there and downloads are switched off; get {file.url} and put it there")
        download(file, root)
    content = read_regular(path, file.largest)
    if file.is_genuine(content) is False and not (accept and accept(content)):
        try:
            aside = f"it was renamed to {path.replace(_rejected(path)).name}"
        except OSError:
            aside = "it is not used"
        raise DataError(
            f"{path} is not the published file (its checksum differs); {aside}; run again to download it, "
            f"or put {file.url} there"
        )
    return content


def download(file: RawFile, root: Path) -> None:
    """Download a file, verify it and write it atomically into the data root.

    Transient failures are retried after a pause that doubles. A file with a wrong checksum is kept as ``*.rejected``
    and not used.
    """
    path = root / file.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _fetch_with_retries(file, path)
        genuine = file.is_genuine(content) is not False
        write_atomically(path if genuine else _rejected(path), content)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written: {error.strerror or error}; free some space, or choose another data root with "
            "--data-root or KURAMOTOGNN_DATA"
        ) from error
    if not genuine:
        raise DataError(
            f"the file from {file.url} is not the published one (its checksum differs); it was saved as "
            f"{_rejected(path).name} and is not used"
        )


def _rejected(path: Path) -> Path:
    return path.with_name(f"{path.name}.rejected")


def _fetch_with_retries(file: RawFile, path: Path) -> bytes:
    for attempt in range(ATTEMPTS):
        try:
            return _fetch(file)
        except urllib.error.HTTPError as error:
            reason = f"the server answered {error.code} {error.reason}"
            if error.code < 500 and error.code != 429:
                break
        except (OSError, http.client.HTTPException) as error:  # Includes URLError and TimeoutError.
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        if attempt + 1 < ATTEMPTS:
            time.sleep(FIRST_PAUSE * 2**attempt)
    raise DataError(f"{file.url} cannot be downloaded: {reason}; get it by other means and put it in {path}")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirection only to an address that may be downloaded from."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The request of the new address."""
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_scheme(url: str) -> None:
    if urllib.parse.urlsplit(url).scheme not in SCHEMES:
        raise DataError(f"{url} is not an https address, so nothing is downloaded from it; get it by other means")


def _fetch(file: RawFile) -> bytes:
    report, content = _progress.get(), bytearray()
    _check_scheme(file.url)
    with urllib.request.build_opener(_SafeRedirects).open(file.url, timeout=TIMEOUT) as response:
        length = response.headers.get("Content-Length")
        total = int(length) if length and length.isdigit() else None
        while chunk := response.read(CHUNK):
            content += chunk
            if max(len(content), total or 0) > file.largest:
                raise DataError(
                    f"{file.url} sends more than the {file.largest} bytes that the file has at most; nothing was kept"
                )
            if report:
                report(Path(file.path).name, len(content), total)
    if total is not None and len(content) != total:
        raise http.client.IncompleteRead(b"", total - len(content))
    return bytes(content)
