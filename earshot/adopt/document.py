"""YAML as compose reads it: every scalar as text, merge keys, and no key twice in one map.

Text, because `0`, `1.10` or `22:22` mean what stands there, and YAML 1.1 would count with them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from earshot.errors import EarshotError

MAX_NODES = 200_000
MAX_DEPTH = 64
_KEPT = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {  # noqa: RUF012 - as the base class declares it
        first: [item for item in resolvers if item[0] in _KEPT]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def refuse_tag(self, suffix: str, node: yaml.Node) -> object:
        raise yaml.constructor.ConstructorError(
            problem=f"the tag !{suffix} is not read; adopt what `docker compose config` prints",
            problem_mark=node.start_mark,
        )


_Loader.add_multi_constructor("!", _Loader.refuse_tag)


def read_document(text: str, shown: str) -> object:
    """The document in ``text``: maps, lists, texts and None. Raises EarshotError."""
    try:
        return yaml.load(text, _Loader)  # a SafeLoader
    except RecursionError:
        raise EarshotError(shown, observed="is nested too deeply", allowed="YAML") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise EarshotError(
            shown,
            observed=f"is no YAML; {where}{error.problem or error.context}",
            remedy="mend that line (indent with blanks, never with tabs)",
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise EarshotError(shown, observed=f"is no YAML ({message})", allowed="YAML") from None
