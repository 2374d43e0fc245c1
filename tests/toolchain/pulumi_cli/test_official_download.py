"""Pulumi's installer, played by a double on loopback."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolchain.pulumi_cli import official

VERSION = "3.259.0"
INSTALLER = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --install-root) root=$2; shift ;; --version) version=$2; shift ;; esac
  shift
done
mkdir "$root/bin"
for name in pulumi pulumi-language-python; do
  echo "#!/bin/sh" > "$root/bin/$name"; chmod +x "$root/bin/$name"
done
echo "$version" > "$root/bin/version"
"""


class Site:
    """Answers every request with ``text``, or only once it is told to end."""

    def __init__(self) -> None:
        self.text = INSTALLER
        self.silent = threading.Event()
        self.requests = 0
        site = self
        end = self._end = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests += 1
                if site.silent.is_set():
                    end.wait()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(site.text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/install.sh"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv(official.OPT_OUT, raising=False)
    monkeypatch.setattr(official, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(official, "ANSWER_SECONDS", 60.0)
    site = Site()
    yield site
    site.close()


def test_installed_once_at_the_wanted_version(site: Site) -> None:
    directory = official.download(VERSION, site.url)
    assert directory is not None
    assert (directory / "version").read_text().strip() == VERSION
    assert official.download(VERSION, site.url) == directory
    assert site.requests == 1


def test_opt_out_sends_no_request(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(official.OPT_OUT, "1")
    assert official.download(VERSION, site.url) is None
    assert site.requests == 0


def test_silent_site_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official, "ANSWER_SECONDS", 0.1)
    site.silent.set()
    assert official.download(VERSION, site.url) is None


def test_unreachable_site_is_given_up(site: Site) -> None:
    assert official.download(VERSION, "http://127.0.0.1:1/install.sh") is None


@pytest.mark.parametrize("text", ["echo no disk space; exit 1", "exit 0", "<html>a portal</html>"])
def test_installer_that_fails_is_reported_and_leaves_nothing(
    site: Site, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.text = text
    assert official.download(VERSION, site.url) is None
    assert "building it instead" in capsys.readouterr().out
    assert not (tmp_path / "earshot" / "pulumi" / f"{VERSION}-official").exists()
