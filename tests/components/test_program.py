"""A stack's program starts the plugin while it is imported."""

from typing import Any

import grpc
import pytest
from earshot_pulumi import program
from earshot_pulumi.provider.resource import START_FUNCTION
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.proto.resource_pb2_grpc import ResourceMonitorStub

from earshot import __version__


class Monitor(ResourceMonitorStub):
    """Pulumi's resource monitor, which records the calls of functions."""

    def __init__(self, error: Exception | None = None) -> None:
        self.requests: list[resource_pb2.ResourceInvokeRequest] = []
        self._error = error

    def Invoke(self, request: resource_pb2.ResourceInvokeRequest) -> None:
        self.requests.append(request)
        if self._error is not None:
            raise self._error


class Mocks:
    """A monitor of Pulumi's mocks, which is not the engine's."""

    def Invoke(self, request: resource_pb2.ResourceInvokeRequest) -> None:
        pytest.fail("mocks were called")


def start_with(monitor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "get_monitor", lambda: monitor)
    program.start_plugin().join()


def test_the_engine_starts_the_plugin_that_the_resources_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monitor = Monitor()
    start_with(monitor, monkeypatch)
    [request] = monitor.requests
    assert (request.tok, request.version) == (START_FUNCTION, __version__)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("monitor", [Monitor(grpc.RpcError()), Mocks(), None])
def test_the_start_reports_no_error(monitor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    start_with(monitor, monkeypatch)
