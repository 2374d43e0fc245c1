"""A client of kube-apiserver, with a token."""

from pathlib import Path
from typing import Any

import requests

Object = dict[str, Any]
SECONDS = 30
NOT_FOUND = 404
_GROUPS = {"StatefulSet": "apis/apps/v1", "Deployment": "apis/apps/v1", "DaemonSet": "apis/apps/v1"}
_SLICES = "apis/discovery.k8s.io/v1"


class Api:
    """Requests to one server; a refused one raises RuntimeError with the server's words."""

    def __init__(self, url: str, token: str, certificate: Path) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = str(certificate)
        self._session.headers["Authorization"] = f"Bearer {token}"

    def is_ready(self) -> bool:
        try:
            return self._session.get(f"{self._url}/readyz", timeout=SECONDS).ok
        except OSError:  # the server has no certificate yet, or does not answer
            return False

    def create(self, resource: Object) -> Object:
        """Make ``resource`` in the namespace that it names."""
        return self._ask("POST", self._collection(resource), resource)

    def status(self, resource: Object, status: Object) -> None:
        """Give ``resource`` (of the core group) a status."""
        path = f"{self._collection(resource)}/{resource['metadata']['name']}/status"
        self._ask("PATCH", path, {"status": status})

    def bind(self, pod: Object, node: str) -> None:
        """Binds a pod to a node, in place of the scheduler."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        pod_metadata = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": pod_metadata,
            "target": target,
        }
        self._ask("POST", f"{self._collection(pod)}/{pod_metadata['name']}/binding", binding)

    def namespaces(self) -> list[Object]:
        return self._items("api/v1/namespaces")

    def pods(self, namespace: str) -> list[Object]:
        # items of a list have no kind
        return [
            {"kind": "Pod", **pod} for pod in self._items(f"api/v1/namespaces/{namespace}/pods")
        ]

    def services(self, namespace: str) -> list[Object]:
        return self._items(f"api/v1/namespaces/{namespace}/services")

    def slices(self, namespace: str) -> list[Object]:
        """The EndpointSlices."""
        return self._items(f"{_SLICES}/namespaces/{namespace}/endpointslices")

    def delete_namespace(self, name: str) -> None:
        """Deletes a namespace and its resources. Pods, Services and their ports go at once."""
        self._ask("DELETE", f"api/v1/namespaces/{name}")
        for kind, resources in (("pods", self.pods(name)), ("services", self.services(name))):
            for resource in resources:
                path = f"api/v1/namespaces/{name}/{kind}/{resource['metadata']['name']}"
                self._ask("DELETE", f"{path}?gracePeriodSeconds=0", may_be_missing=True)

    def delete_service(self, namespace: str, name: str) -> None:
        self._ask("DELETE", f"api/v1/namespaces/{namespace}/services/{name}")

    def _items(self, path: str) -> list[Object]:
        items: list[Object] = self._ask("GET", path)["items"]
        return items

    @staticmethod
    def _collection(resource: Object) -> str:
        kind = resource["kind"]
        group = _GROUPS.get(kind, "api/v1")
        namespace = resource["metadata"].get("namespace")
        return f"{group}/namespaces/{namespace}/{kind.lower()}s" if namespace else (
            f"{group}/{kind.lower()}s"
        )  # fmt: skip

    def _ask(
        self, method: str, path: str, body: Object | None = None, *, may_be_missing: bool = False
    ) -> Object:
        kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
        answer = self._session.request(
            method,
            f"{self._url}/{path}",
            json=body,
            headers={"Content-Type": kind},
            timeout=SECONDS,
        )
        answer_body: Object = answer.json()
        if not answer.ok and not (may_be_missing and answer.status_code == NOT_FOUND):
            raise RuntimeError(f"{method} {path}: {answer_body.get('message', answer.text)}")
        return answer_body
