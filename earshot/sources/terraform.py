"""The containers and user data that a Terraform module declares.

`docker_container` of the provider kreuzwerker/docker has the inputs of Pulumi's `docker.Container`,
which is made from it. The values of variables are those of `terraform.tfvars`, else their defaults.
Source: https://registry.terraform.io/providers/kreuzwerker/docker/latest/docs/resources/container.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from earshot.listeners.placeholders import is_known
from earshot.sources.alternatives import with_alternatives
from earshot.sources.docker_container import read_service
from earshot.sources.docker_run import link_of
from earshot.sources.hcl import Block, Expression, Value, evaluate, read_blocks, shown
from earshot.sources.service import Service
from earshot.sources.terraform_json import read_json_blocks, read_json_values
from earshot.sources.values import list_of
from earshot.sources.workloads import free_name
from earshot.topology.container import HiddenPort

CONTAINER = "docker_container"
TASK = "aws_ecs_task_definition"
USER_DATA = ("user_data", "metadata_startup_script")
"""Attributes of resources that create instances."""
_TEXTS = {"image": "image", "name": "name", "hostname": "hostname", "network_mode": "networkMode"}
_LISTS = {"env": "envs", "command": "command", "entrypoint": "entrypoints"}
_BLOCKS = {
    "ports": "ports",
    "networks_advanced": "networksAdvanced",
    "volumes": "volumes",
    "mounts": "mounts",
    "upload": "uploads",
    "host": "hosts",
    "labels": "labels",
}
_KEYS = {
    "container_path": "containerPath",
    "ipv4_address": "ipv4Address",
    "content_base64": "contentBase64",
}
_NAMED_BY = {
    "docker_network": ("name", "id"),
    "docker_image": ("name", "image_id", "latest", "repo_digest"),
    "docker_registry_image": ("name",),
    CONTAINER: ("name", "id"),
}
"""Attributes whose value is the name of a resource."""
_DEPTH = 8
"""Maximum length of a chain of references."""
_NOTHING = Expression("", 0)
_OVERRIDE = re.compile(r"(?:^|[/\\_])override\.tf(?:\.json)?$")
"""The names of files whose blocks are merged into those of the other files."""
_REPEATED = ("count", "for_each")


@dataclass(frozen=True)
class DeclaredContainer:
    """A container, the file and block of its resource, and the provider that it names."""

    service: Service
    file: str
    block: Block
    provider: str = ""


class Module:
    """The blocks of ``files`` (text by name); ``values`` are texts with values of variables."""

    def __init__(self, files: Mapping[str, str], values: Iterable[str] = ()):
        self.files = {
            name: (read_json_blocks if name.endswith(".json") else read_blocks)(text)
            for name, text in files.items()
        }
        for name in sorted(filter(_OVERRIDE.search, self.files)):
            self._override(self.files[name], name)
        self._blocks = [block for root in self.files.values() for block in root.blocks]
        self._resources = {
            block.labels: block for block in self._blocks if block.type in ("resource", "data")
        }
        self._given: dict[str, Expression] = {}
        self._locals: dict[str, Expression] = {}
        for block in self._blocks:
            if block.type == "variable" and "default" in block.attributes:
                self._given["".join(block.labels)] = block.attributes["default"]
            elif block.type == "locals":
                self._locals |= block.attributes
        for text in values:
            is_json = text.lstrip().startswith("{")
            self._given |= (read_json_values if is_json else read_blocks)(text).attributes
        self._values: dict[tuple[str, ...], Value] = {}
        """By reference; None for those that are being resolved."""
        self._depth = 0

    def _override(self, root: Block, name: str) -> None:
        """Merges the blocks of an override file into those that they override.

        Source: https://developer.hashicorp.com/terraform/language/files/override
        """
        others = (file for file_name, file in self.files.items() if file_name != name)
        overridden = {(block.type, block.labels): block for file in others for block in file.blocks}
        own = []
        for block in root.blocks:
            target = overridden.get((block.type, block.labels)) if block.labels else None
            if target is None:
                own.append(block)
                continue
            replaced = {inner.type for inner in block.blocks}
            target.attributes |= block.attributes
            kept = [inner for inner in target.blocks if inner.type not in replaced]
            target.blocks = [*kept, *block.blocks]
        root.blocks = own

    def resolve(self, path: tuple[str, ...]) -> Value:
        """The value of a reference, or None."""
        if path not in self._values and self._depth < _DEPTH:
            self._values[path] = None
            self._depth += 1
            self._values[path] = self._resolved(path)
            self._depth -= 1
        return self._values.get(path)

    def _resolved(self, path: tuple[str, ...]) -> Value:
        head, *rest = path[1:] if path[0] == "data" and len(path) > 1 else path
        if head in ("var", "local") and rest:
            expression = (self._given if head == "var" else self._locals).get(rest[0])
            value = evaluate(expression.text, self.resolve) if expression is not None else None
            return _descended(value, rest[1:])
        block = self._resources.get((head, rest[0])) if rest else None
        if block is None:
            return None
        attribute = rest[-1]
        key = "name" if attribute in _NAMED_BY.get(head, ()) else attribute
        if head not in _NAMED_BY or key not in ("name", "hostname") or key not in block.attributes:
            return None
        return shown(block.attributes[key].text, self.resolve)

    def containers(self) -> Iterator[DeclaredContainer]:
        """The declared containers of all files; the second of one name is called `NAME#2`."""
        created = {
            shown(block.attributes["name"].text, self.resolve)
            for labels, block in self._resources.items()
            if labels[:1] == ("docker_network",) and "name" in block.attributes
        }
        others = any(block.type == "module" for block in self._blocks) or any(
            labels[:1] == (CONTAINER,) and any(key in block.attributes for key in _REPEATED)
            for labels, block in self._resources.items()
        )
        declared = [
            DeclaredContainer(self._service(block), file, block)
            for file, root in self.files.items()
            for block in root.inner("resource")
            if block.labels[:1] == (CONTAINER,) and len(block.labels) == 2
        ]
        containers = with_alternatives(
            [one.service.container for one in declared], [_condition(one.block) for one in declared]
        )
        used_names: set[str] = set()
        for one, container in zip(declared, containers, strict=True):
            is_open = others or any(network.name not in created for network in container.networks)
            is_open = is_open or bool(container.links)
            service = replace(
                one.service,
                container=replace(container, open_networks=is_open),
                name=free_name(one.service.name, used_names),
            )
            provider = one.block.attributes.get("provider", _NOTHING).text
            yield replace(one, service=service, provider=provider)

    def _service(self, block: Block) -> Service:
        inputs: dict[str, object] = {}
        for key, name in _TEXTS.items():
            if key in block.attributes:
                inputs[name] = shown(block.attributes[key].text, self.resolve)
        for key, name in _LISTS.items():
            if key in block.attributes:
                inputs[name] = evaluate(block.attributes[key].text, self.resolve)
        for key, name in _BLOCKS.items():
            entries: list[object] = [self._entry(inner) for inner in block.inner(key)]
            entries += [None for inner in block.inner("dynamic") if inner.labels == (key,)]
            if entries:
                inputs[name] = entries
        ports = list_of(inputs.get("ports"))
        hidden = [entry for entry in ports if isinstance(entry, dict) and _is_hidden(entry)]
        service = read_service({**inputs, "ports": [one for one in ports if one not in hidden]})
        container = service.container
        published = (HiddenPort(int(entry["internal"]), None) for entry in hidden)
        unknown = ("env" if part == "variables" else part for part in container.unknown)
        links = evaluate(block.attributes.get("links", _NOTHING).text, self.resolve)
        container = replace(
            container,
            published=(*container.published, *published),
            unknown=tuple(unknown),
            links=dict(link_of(link) for link in list_of(links) if isinstance(link, str)),
        )
        name = container.name
        image = block.attributes.get("image")
        test = [
            evaluate(inner.attributes["test"].text, self.resolve)
            for inner in block.inner("healthcheck")
            if "test" in inner.attributes
        ]
        return replace(
            service,
            container=container,
            # a dot, so that it is no host
            name=name if name and is_known(name) else ".".join(block.labels),
            is_built=image is not None and self._is_built(image.text),
            health_check=tuple(str(word) for words in test for word in list_of(words)),
        )

    def _entry(self, block: Block) -> dict[str, object]:
        entry: dict[str, object] = {}
        for key, expression in block.attributes.items():
            value = evaluate(expression.text, self.resolve)
            is_list = isinstance(value, list)
            entry[_KEYS.get(key, key)] = value if is_list else shown(expression.text, self.resolve)
        return entry

    def _is_built(self, image: str) -> bool:
        parts = tuple(image.strip('"${} ').split(".")[:2])
        block = self._resources.get(parts)
        return block is not None and any(block.inner("build"))


def _condition(block: Block) -> str:
    """The expression that decides whether a resource is made; empty if nothing does."""
    text = "".join(block.attributes.get(key, _NOTHING).text for key in _REPEATED)
    return "" if text.isdecimal() else text


def _is_hidden(port: Mapping[str, object]) -> bool:
    """Whether only the machine's side of a port is a variable that is not set."""
    is_internal_known = re.fullmatch("[0-9]{1,5}", str(port.get("internal")))
    return bool(is_internal_known) and not is_known(str(port.get("external", "")))


def _descended(value: Value, keys: Sequence[str]) -> Value:
    for key in keys:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value
