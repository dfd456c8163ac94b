"""Files as bytes: regular files only, of bounded size; what is compressed is unpacked within a limit."""

from __future__ import annotations

import gzip
import io
import stat
import zipfile
import zlib
from pathlib import Path

from kuramotognn.data.data_error import DataError

LARGEST_FILE = 8 << 30
"""Bytes of a file that are read at most."""
FREE_EXPANSION, EXPANSION = 64 << 20, 100
"""What is compressed may unpack to 64 MB and a hundred times its size; a bomb unpacks to a thousand times."""
HEAD = 4096
GZIP_MAGIC, ZIP_MAGIC = b"\x1f\x8b", b"PK\x03\x04"


def read_bytes(path: Path) -> bytes:
    """The content of a file that exists and is not empty; a gzipped file is unpacked."""
    content = read_regular(path)
    if content[:2] == GZIP_MAGIC:
        content = gunzip(content, path)
    if not content.strip():
        raise DataError(f"{path} is empty")
    return content


def read_regular(path: Path, largest: int = LARGEST_FILE) -> bytes:
    """The content of a regular file; a pipe or device could block or never end."""
    try:
        # A pipe without a writer blocks when it is opened, so ask first.
        facts = path.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise DataError(f"{path} cannot be read: Is a directory; name a file")
        if not stat.S_ISREG(facts.st_mode):
            raise DataError(f"{path} is a pipe, socket or device, not a file; save its content in a file")
        if facts.st_size > largest:
            raise DataError(f"{path} has {facts.st_size} bytes, more than the {largest} that are read at most")
        with path.open("rb") as file:
            head = file.read(HEAD)
            if len(head) == HEAD and not head.strip(b"\0"):
                raise DataError(f"{path} begins with {HEAD} zero bytes: it is damaged, or was never written")
            return head + file.read(largest)
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{str(path)!r} is not the name of a file: {error}") from error


def check_expansion(path: Path | str, packed: int, unpacked: int) -> None:
    """Raise DataError if a compressed file unpacks to far more than its size."""
    if unpacked > expansion_limit(packed):
        raise DataError(
            f"{path} has {packed} bytes and unpacks to {unpacked} or more, as a decompression bomb does; if it is "
            "genuine, store it uncompressed, and a matrix of zeros as a sparse one"
        )


def expansion_limit(packed: int) -> int:
    """How many bytes a compressed file of this size may unpack to."""
    return FREE_EXPANSION + EXPANSION * packed


def gunzip(content: bytes, path: Path | str) -> bytes:
    """Unpack gzip within the limit."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            unpacked = file.read(expansion_limit(len(content)) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read as gzip: {error}; get it again") from error
    check_expansion(path, len(content), len(unpacked))
    return unpacked


def open_zip(content: bytes, path: Path | str) -> zipfile.ZipFile:
    """A zip archive whose members together stay within the limit; reading a member stops at its declared size."""
    archive = zipfile.ZipFile(io.BytesIO(content))
    check_expansion(path, len(content), sum(member.file_size for member in archive.infolist()))
    return archive


def home_expanded(path: Path | str) -> Path:
    """The path with ``~`` replaced by the home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise DataError(f"{str(path)!r} names a home folder that does not exist; write the whole path") from error
