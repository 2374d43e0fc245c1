"""The program of a stack: one cluster from its stack file."""

from __future__ import annotations

import atexit
import contextlib
import gc
import threading
from typing import TYPE_CHECKING

import grpc
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.proto.resource_pb2_grpc import ResourceMonitorStub
from pulumi.runtime.settings import get_monitor

from earshot import __version__
from earshot_pulumi.provider.resource import START_FUNCTION

if TYPE_CHECKING:
    from earshot_pulumi.cluster import Cluster


def stack_cluster() -> Cluster:
    """The cluster of the current stack's file: a `LocalCluster`, `DockerCluster` or `AwsCluster`
    with the stack's name.

    The project may have any name. Raises pulumi.RunError with a message for the user.
    """
    start_plugin()
    # a run is short and keeps its modules: collect garbage rarely, and not at the end
    gc.set_threshold(20_000, 20, 20)
    atexit.register(gc.freeze)
    from earshot_pulumi.stack_program import cluster_of_stack  # while the plugin starts

    return cluster_of_stack()


def start_plugin() -> threading.Thread:
    """Lets the engine start the plugin now, in a thread, and not at the first custom resource.

    An error is not reported here, because that resource meets the same one. Mocks get no call.
    """
    monitor = get_monitor()
    request = resource_pb2.ResourceInvokeRequest(tok=START_FUNCTION, version=__version__)

    def call() -> None:
        with contextlib.suppress(grpc.RpcError):
            if isinstance(monitor, ResourceMonitorStub):
                monitor.Invoke(request)

    thread = threading.Thread(target=call, name="plugin", daemon=True)
    thread.start()
    return thread
