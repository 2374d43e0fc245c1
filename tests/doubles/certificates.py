"""Certificates that tests create."""

import subprocess
from pathlib import Path


def self_signed(folder: Path, names: str, days: int = 10) -> Path:
    """A PEM file in ``folder`` with a certificate for ``names`` (`DNS:…,IP:…`) and its key."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    command += f" -days {days} -subj /CN=broker -addext subjectAltName={names}"
    command += " -keyout key.pem -out cert.pem"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    combined = folder / "both.pem"
    combined.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return combined
