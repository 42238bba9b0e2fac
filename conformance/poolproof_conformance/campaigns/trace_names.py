"""Names of the files in which the traces of kinds are kept."""

from hashlib import sha256

from poolproof_conformance.campaigns.rows import Cell

DIGEST_LENGTH = 8


def kind_slug(property_name: str, signature: str) -> str:
    """A name for a kind: its property, and enough of a digest of its signature to tell it from others."""
    digest = sha256(f"{property_name} {signature}".encode()).hexdigest()[:DIGEST_LENGTH]
    return f"{property_name}-{digest}"


def trace_name(cell: Cell, property_name: str, signature: str) -> str:
    """Path of a kind's trace below the campaign's folder: sglang-0.5.23-rust-eager/tri/complete-0a1b2c3d.json."""
    target = "".join(sign if sign.isalnum() or sign in ".-_" else "-" for sign in cell.target.replace("==", "-"))
    how = "-".join(part for part in (target, cell.core, cell.mode) if part)
    return f"{how}/{cell.layout}/{kind_slug(property_name, signature)}.json"
