"""A Maven repository double: a few tiny modules over HTTP on loopback, with published checksums."""

from __future__ import annotations

import hashlib
import http.server
import io
import threading
import zipfile
from pathlib import Path
from typing import BinaryIO


class MavenRepositoryDouble:
    """Serves the modules of ``add``; ``requests`` has the requested paths.

    The first ``failures`` requests are answered like those to a gateway without its server.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[str] = []
        self.failures = 0
        double = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments: object) -> None:
                super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

            def send_head(self) -> io.BytesIO | BinaryIO | None:
                double.requests.append(self.path)
                if double.failures:
                    double.failures -= 1
                    self.send_error(502)
                    return None
                return super().send_head()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self) -> MavenRepositoryDouble:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, coordinate: str, *needs: str) -> Path:
        """Publish a jar with its POM. Returns the path of the jar, which a test may damage."""
        group, artifact, version = coordinate.split(":")
        folder = self.folder / group.replace(".", "/") / artifact / version
        folder.mkdir(parents=True)
        dependencies = "".join(
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId>"
            "<version>{}</version></dependency>".format(*need.split(":"))
            for need in needs
        )
        pom = (
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version><dependencies>{dependencies}</dependencies></project>"
        )
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as jar:
            jar.writestr("name.txt", coordinate)
        jar_path = folder / f"{artifact}-{version}.jar"
        for path, file_content in (
            (jar_path, content.getvalue()),
            (jar_path.with_suffix(".pom"), pom.encode()),
        ):
            path.write_bytes(file_content)
            Path(f"{path}.sha1").write_text(hashlib.sha1(file_content).hexdigest())
        return jar_path
