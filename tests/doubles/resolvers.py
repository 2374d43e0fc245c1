"""Doubles of resolvers: they answer from a table and count the lookups."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from earshot.names.lookup import Diagnosis, Lookup, combined
from earshot.names.policy import SystemResolvers

Table = Mapping[str, tuple[str, ...] | Diagnosis]


class TableResolver:
    """Answers from ``table``; a name that is not in it does not exist.

    `invented` maps an absolute name, such as `example.com.`, which is not counted, to addresses.
    """

    def __init__(self, label: str, table: Table | None = None) -> None:
        self._label = label
        self.table = dict(table or {})
        self.invented: Callable[[str], tuple[str, ...]] = lambda name: ()
        self.asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def label(self) -> str:
        return self._label

    def resolve(self, name: str, seconds: float) -> Lookup:
        if name.endswith("."):
            addresses = self.invented(name)
            diagnosis = Diagnosis.OK if addresses else Diagnosis.NXDOMAIN
            return Lookup(name, self.label, diagnosis, addresses)
        with self._lock:
            self.asked[name] += 1
        answer = self.table.get(name.lower(), Diagnosis.NXDOMAIN)
        if isinstance(answer, tuple):
            return Lookup(name, self.label, Diagnosis.OK, answer)
        silent = answer is Diagnosis.TIMEOUT
        return Lookup(name, self.label, answer, answered=not silent)


class SeveralResolvers:
    """Combines the answers of some tables, as `DnsResolver` does with servers."""

    def __init__(self, resolvers: Sequence[TableResolver]) -> None:
        self._resolvers = resolvers

    @property
    def label(self) -> str:
        return ", ".join(resolver.label for resolver in self._resolvers)

    def resolve(self, name: str, seconds: float) -> Lookup:
        answers = [resolver.resolve(name, seconds) for resolver in self._resolvers]
        return combined(name, self.label, answers)


class SilentResolver:
    """Blocks like a hanging getaddrinfo. `release` ends its threads."""

    def __init__(self, label: str = "silence") -> None:
        self._label = label
        self._released = threading.Event()

    @property
    def label(self) -> str:
        return self._label

    def resolve(self, name: str, seconds: float) -> Lookup:
        self._released.wait()
        return Lookup(name, self.label, Diagnosis.TIMEOUT, answered=False)

    def release(self) -> None:
        self._released.set()


class TableAsked(SystemResolvers):
    """The resolvers of a world made of tables, by label: `system`, a server, or `a, b`."""

    def __init__(
        self,
        tables: Mapping[str, Table],
        configured: tuple[str, ...] = (),
        search: tuple[str, ...] = (),
    ) -> None:
        self._search = search
        self.resolvers = {label: TableResolver(label, table) for label, table in tables.items()}
        self._configured = configured

    def configured(self) -> tuple[str, ...]:
        return self._configured

    def search(self) -> tuple[str, ...]:
        return self._search

    def system(self) -> TableResolver:
        return self._resolver("system")

    def dns(self, servers: tuple[str, ...]) -> TableResolver | SeveralResolvers:
        if len(servers) > 1 and all(server in self.resolvers for server in servers):
            return SeveralResolvers([self.resolvers[server] for server in servers])
        return self._resolver(", ".join(servers))

    def _resolver(self, label: str) -> TableResolver:
        return self.resolvers.setdefault(label, TableResolver(label))
