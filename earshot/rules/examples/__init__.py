"""For each rule, a short file that breaks it, and the corrected file.

The files are next to this module: `KL006.bad.yaml` and `KL006.good.yaml` (a Compose file or
manifest), or `KL004.bad.properties`, in which a blank line separates brokers and comments add
further facts.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Example:
    """A file that breaks a rule, and the corrected file."""

    form: str
    """`yaml` or `properties`."""
    bad: str
    good: str


def example_of(rule: str) -> Example:
    """The example of the rule with this id. Raises FileNotFoundError without one."""
    paths = [path for form in ("yaml", "properties") for path in FOLDER.glob(f"{rule}.bad.{form}")]
    if not paths:
        raise FileNotFoundError(2, "No example", f"{FOLDER / rule}.bad.yaml")
    (bad,) = paths
    form = bad.suffix.removeprefix(".")
    return Example(form, bad.read_text(), (FOLDER / f"{rule}.good.{form}").read_text())
