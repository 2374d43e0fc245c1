"""Paths in this checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK_FILE = ROOT / "requirements.lock"

# Files of this checkout outside version control.
PRIVATE = ROOT / ".earshot"
BIN = PRIVATE / "bin"
STATE = PRIVATE / "state"
PULUMI_HOME = PRIVATE / "pulumi"
LOGS = PRIVATE / "logs"
CLI_RECORD = PRIVATE / "pulumi-cli.json"
SETUP_LOCK = PRIVATE / "setup.lock"
POLICIES = ROOT / "policies"
LANGUAGE_HOST = ROOT / "language_host"
STACKS = ROOT / "stacks"
