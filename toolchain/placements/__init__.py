"""What a placement needs before Pulumi runs, and what `make clean` removes: modules if any."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from earshot.config.document import Spec
from earshot.placements import PLACEMENTS
from toolchain.plugins import check_plugin


def check(spec: Spec, environment: Mapping[str, str]) -> None:
    """Check that ``spec`` can be deployed from here. Raises EarshotError."""
    if _has_module(spec.placement):
        import_module(f"{__name__}.{spec.placement}").check(spec)
    if PLACEMENTS[spec.placement].plugin:
        check_plugin(spec.placement, environment)


def remove_data(spec: Spec, stack: str, state_dir: Path) -> None:
    """Remove what a stack keeps outside ``state_dir``. Raises EarshotError."""
    if _has_module(spec.placement):
        import_module(f"{__name__}.{spec.placement}").remove_data(spec, stack, state_dir)


def _has_module(placement: str) -> bool:
    return importlib.util.find_spec(f"{__name__}.{placement}") is not None
