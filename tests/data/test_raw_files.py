"""Downloads from a local server."""

import errno
import hashlib
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kuramotognn.data import DATASETS, DataError, load_dataset
from kuramotognn.data import raw_files as files
from kuramotognn.data.raw_files import RawFile, data_root, download, offline, read_raw, reporting
from tests.data.limits import make_pipe

CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """Serves ``CONTENT`` after the responses listed in ``script``."""

    url: str = ""
    script: list[str] = field(default_factory=list)
    requests: int = 0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests += 1
            answer = state.script.pop(0) if state.script else "whole"
            if answer.isdigit():
                self.send_error(int(answer))
                return
            if "://" in answer:
                self.send_response(302)
                self.send_header("Location", answer)
                self.end_headers()
                return
            if answer == "endless":
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    while True:
                        self.wfile.write(CONTENT)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            with suppress(OSError):  # The client may have enough.
                self.wfile.write({"whole": CONTENT, "half": CONTENT[:1000], "other": CONTENT[::-1]}[answer])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_address[1]}/file.bin"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(files, "FIRST_PAUSE", 0.001)
        monkeypatch.setattr(files, "SCHEMES", ("http",))
        yield state
        http.shutdown()
        thread.join()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_a_download_is_complete_and_reports_its_progress(server: Server, tmp_path: Path) -> None:
    reported: list[tuple[str, int, int | None]] = []
    with reporting(lambda *progress: reported.append(progress)):
        assert read_raw(RawFile("Set/raw/file.bin", server.url, SHA256), tmp_path, offline=False) == CONTENT
    assert reported[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in reported] == sorted(done for _, done, _ in reported)
    assert names(tmp_path) == {"file.bin"}
    read_raw(RawFile("Set/raw/file.bin", server.url, SHA256), tmp_path, offline=False)
    assert server.requests == 1, "an existing file is not downloaded again"


@pytest.mark.parametrize("script", [["500"], ["half"], ["503", "half", "429"]])
def test_transient_failures_are_retried(script: list[str], server: Server, tmp_path: Path) -> None:
    server.script = list(script)
    download(RawFile("file.bin", server.url, SHA256), tmp_path)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.requests == len(script) + 1


def test_a_permanent_failure_names_the_file_and_its_place(server: Server, tmp_path: Path) -> None:
    server.script = ["500"] * 9
    with pytest.raises(DataError, match=r"the server answered 500.*put it in .*Set/raw/file\.bin"):
        download(RawFile("Set/raw/file.bin", server.url, SHA256), tmp_path)
    assert server.requests == files.ATTEMPTS
    assert not names(tmp_path)


def test_not_found_is_not_retried(server: Server, tmp_path: Path) -> None:
    server.script = ["404"]
    with pytest.raises(DataError, match="404"):
        download(RawFile("file.bin", server.url, SHA256), tmp_path)
    assert server.requests == 1


def test_an_unreachable_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FIRST_PAUSE", 0.001)
    with pytest.raises(DataError, match=r"cannot be downloaded: .*get it by other means"):
        download(RawFile("file.bin", "https://127.0.0.1:9/file.bin"), tmp_path)


def test_a_file_with_a_wrong_checksum_is_renamed_and_not_used(server: Server, tmp_path: Path) -> None:
    server.script = ["other"]
    with pytest.raises(DataError, match=r"its checksum differs.*saved as file\.bin\.rejected"):
        download(RawFile("file.bin", server.url, SHA256), tmp_path)
    assert (tmp_path / "file.bin.rejected").read_bytes() == CONTENT[::-1]
    assert read_raw(RawFile("file.bin", server.url, SHA256), tmp_path, offline=False) == CONTENT


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "ftp://127.0.0.1:9/x", "file:///etc/hostname"])
def test_only_https_is_downloaded_from(url: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not an https address"):
        download(RawFile("file.bin", url, SHA256), tmp_path)
    assert not names(tmp_path)


@pytest.mark.parametrize("url", ["https://127.0.0.1:9/x", "ftp://127.0.0.1:9/x"])
def test_a_redirection_to_another_scheme_is_not_followed(url: str, server: Server, tmp_path: Path) -> None:
    server.script = [url]  # The server of this test speaks http, which stands for https here.
    with pytest.raises(DataError, match=r"127\.0\.0\.1:9/x is not an https address"):
        download(RawFile("file.bin", server.url, SHA256), tmp_path)
    assert not names(tmp_path)


@pytest.mark.parametrize("answer", ["endless", "whole"])
def test_a_download_has_a_size_limit(answer: str, server: Server, tmp_path: Path) -> None:
    server.script = [answer]
    with pytest.raises(DataError, match="sends more than the 1000 bytes"):
        download(RawFile("file.bin", server.url, SHA256, largest=1000), tmp_path)
    assert server.requests == 1
    assert not names(tmp_path)


def test_every_public_file_has_an_https_address_and_a_checksum() -> None:
    for info in DATASETS.values():
        sources = [info.archive[0]] if info.archive else info.raw
        assert all(file.url.startswith("https://") for file in (*sources, *info.raw))
        assert all(file.sha256 or file.git_blob for file in sources), info.name


def test_a_pipe_in_place_of_a_raw_file(tmp_path: Path) -> None:
    make_pipe(tmp_path / "file.bin")
    with pytest.raises(DataError, match="is a pipe, socket or device"):
        read_raw(RawFile("file.bin", "https://127.0.0.1:9/x"), tmp_path, offline=True)


def test_a_home_folder_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KURAMOTOGNN_DATA", "~nouser/data")
    with pytest.raises(DataError, match="'~nouser/data' names a home folder that does not exist"):
        data_root()


def test_offline_sends_no_request(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="downloads are switched off; get http"):
        read_raw(RawFile("file.bin", server.url), tmp_path, offline=True)
    assert server.requests == 0


def test_git_blob_ids_equal_those_of_git(tmp_path: Path) -> None:
    # `printf 'hello\n' | git hash-object --stdin`
    assert RawFile("x", "", git_blob="ce013625030ba8dba906f756967f9e9ca394464a").is_genuine(b"hello\n")
    assert RawFile("x", "", git_blob="ce013625030ba8dba906f756967f9e9ca394464a").is_genuine(b"hello") is False
    assert RawFile("x", "").is_genuine(b"hello") is None


def test_a_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "root").write_text("a file in place of a folder")
    with pytest.raises(DataError, match=r"cannot be written: .*choose another data root with --data-root"):
        download(RawFile("Set/file.bin", server.url), tmp_path / "root")


def test_a_full_disk_leaves_nothing_behind(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(DataError, match=r"file\.bin cannot be written: No space left on device; free some space"):
        download(RawFile("file.bin", server.url), tmp_path)
    assert not names(tmp_path)


def test_a_data_set_is_downloaded_when_it_is_first_loaded(
    server: Server, raw_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texas = DATASETS["texas"]

    def copy(file: RawFile, root: Path) -> None:
        (root / file.path).parent.mkdir(parents=True, exist_ok=True)
        (root / file.path).write_bytes((raw_root / file.path).read_bytes())

    monkeypatch.setattr(files, "download", copy)
    assert load_dataset("texas", root=tmp_path, download=True).num_nodes == 183
    assert texas.is_present(tmp_path)


def test_environment_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KURAMOTOGNN_DATA", str(tmp_path))
    assert data_root() == tmp_path
    monkeypatch.delenv("KURAMOTOGNN_DATA")
    assert data_root().name in ("kuramotognn", "data")
    for value, is_offline in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv("KURAMOTOGNN_OFFLINE", value)
        assert offline() is is_offline
