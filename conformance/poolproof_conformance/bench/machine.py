"""What a figure was measured on: processor, cores, kernel, Python, libraries. No host name, no user, no path."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def machine() -> dict[str, str]:
    """Processor, cores that this process may use, kernel, Python."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "processor": _processor(Path("/proc/cpuinfo")),
        "cores": str(cores),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def libraries() -> dict[str, str]:
    """Versions of what the subjects run on."""
    found = {}
    for name in ("poolproof", "torch", "numpy", "triton"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _processor(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return next((model for model in models if model), platform.processor() or "unknown")
