"""Drop-ins of Podman units: `kafka.container.d/*.conf` and the folders of groups of units.

Source: https://docs.podman.io/en/latest/markdown/podman-systemd.unit.5.html, and for the order
`loadUnitDropins` and `GetUnitDropinPaths` of Podman. Only folders next to the unit are read.
"""

from collections.abc import Iterator
from pathlib import Path

UNIT_ENDINGS = (".container", ".pod")
_CONF = ".conf"


def drop_ins(unit: Path) -> tuple[Path, ...]:
    """The drop-ins of the file ``unit`` in the order in which they are merged into it.

    The order is that of their names, whatever their folder is. Of two drop-ins with one name, that
    in the folder of fewer units counts.
    """
    by_name: dict[str, Path] = {}
    for folder_name in _folder_names(unit.name):
        folder = unit.with_name(folder_name)
        if folder.is_dir():
            for file in folder.iterdir():
                if file.suffix == _CONF and file.is_file():
                    by_name.setdefault(file.name, file)
    return tuple(file for _, file in sorted(by_name.items()))


def is_drop_in(file: Path) -> bool:
    """True if ``file`` is in the place of a drop-in, whether or not its unit exists."""
    folder_name = f".{_folder_of(file).name}"
    return file.suffix == _CONF and folder_name.endswith(tuple(f"{x}.d" for x in UNIT_ENDINGS))


def units_of(drop_in: Path) -> tuple[Path, ...]:
    """The units next to the folder of ``drop_in`` into which it is merged, sorted by name."""
    if not is_drop_in(drop_in):
        return ()
    folder = _folder_of(drop_in)
    return tuple(
        unit
        for unit in sorted(folder.parent.glob("*"))
        if unit.suffix in UNIT_ENDINGS and folder.name in _folder_names(unit.name)
        if unit.is_file()
    )


def _folder_of(file: Path) -> Path:
    """The folder of ``file``, with its name also if ``file`` is relative to it."""
    return file.parent if file.parent.name not in ("", "..") else file.absolute().parent


def _folder_names(unit_name: str) -> Iterator[str]:
    """The names of the folders with drop-ins of a unit, the most specific first.

    For `a-b@1.container`: `a-b@1.container.d`, `a-b@.container.d`, `a-.container.d`, `container.d`.
    """
    name = Path(unit_name)
    base, at, instance = name.stem.partition("@")
    yield f"{unit_name}.d"
    if at and instance:
        yield f"{base}@{name.suffix}.d"
    parts = base.split("-")
    for count in range(len(parts) - 1, 0, -1):
        yield f"{'-'.join(parts[:count])}-{name.suffix}.d"
    yield f"{name.suffix.removeprefix('.')}.d"
