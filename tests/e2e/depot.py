"""The server of instances without a cloud: it serves files and receives reports."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from earshot.user_data.boot import NodeReport, NodeState


class Depot:
    """Serves files by name, and stores the reports of nodes (POST to `/report`), in order."""

    def __init__(self, address: str, files: Mapping[str, Path]) -> None:
        self.reports: list[NodeReport] = []
        self._arrived = threading.Condition()
        depot = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = files.get(self.path.removeprefix("/"))
                if path is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(path.stat().st_size))
                self.end_headers()
                with path.open("rb") as file:
                    while chunk := file.read(1 << 20):
                        self.wfile.write(chunk)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                report = NodeReport.read(body)
                if self.path != "/report" or report is None:
                    self.send_error(400, explain=body)
                    return
                depot._keep(report)
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self._server.server_port}"

    @property
    def report_command(self) -> tuple[str, ...]:
        """The command that replaces the one that writes an SSM parameter."""
        return ("curl", "--silent", "--show-error", "--fail", f"{self.url}/report", "--data")

    def await_report(
        self, node: int, *states: NodeState, seconds: float, describe: Callable[[], object] = bool
    ) -> NodeReport:
        """The next report of ``node`` with one of ``states``. Earlier reports are dropped.

        Fails after ``seconds``, with the text of ``describe``.
        """
        end = time.monotonic() + seconds
        with self._arrived:
            while True:
                while (report := self._oldest_of(node)) is not None:
                    if report.state in states:
                        return report
                remaining_seconds = end - time.monotonic()
                assert remaining_seconds > 0, (
                    f"node {node} has not reported {', '.join(states)}\n{describe()}"
                )
                self._arrived.wait(remaining_seconds)

    def _oldest_of(self, node: int) -> NodeReport | None:
        """The oldest stored report of ``node``, which is removed."""
        for index, report in enumerate(self.reports):
            if report.node == node:
                return self.reports.pop(index)
        return None

    def _keep(self, report: NodeReport) -> None:
        with self._arrived:
            self.reports.append(report)
            self._arrived.notify_all()

    @contextlib.contextmanager
    def open(self) -> Iterator[Depot]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.1,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()
