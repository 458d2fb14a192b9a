"""Makes the wheel and the source archive of this package with the standard library alone (PEP 517), so that pip needs no network.

It knows one layout, `src/soloist`, and reads name and version from pyproject.toml; it builds nothing else.
"""

import base64
import hashlib
import re
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, Optional

HERE = Path(__file__).parent


def _said(key: str) -> str:
    found = re.search(rf'^{key} = "(.*)"$', (HERE / "pyproject.toml").read_text("utf-8"), re.M)
    if not found:
        raise ValueError(f"pyproject.toml says no {key}")
    return found.group(1)


NAME = f"soloist_client-{_said('version')}"


def _metadata() -> str:
    head = {"Metadata-Version": "2.1", "Name": _said("name"), "Version": _said("version"), "Summary": _said("description"),
            "Requires-Python": _said("requires-python"), "License": "MIT OR Apache-2.0", "Description-Content-Type": "text/markdown"}
    return "".join(f"{key}: {value}\n" for key, value in head.items()) + "\n" + (HERE / "README.md").read_text("utf-8")


def build_wheel(wheel_directory: str, config_settings: Optional[Dict[str, Any]] = None, metadata_directory: Optional[str] = None) -> str:
    files = {str(path.relative_to(HERE / "src")): path.read_bytes()
             for path in sorted((HERE / "src").rglob("*")) if path.is_file() and path.suffix != ".pyc"}
    files[f"{NAME}.dist-info/METADATA"] = _metadata().encode()
    files[f"{NAME}.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: soloist\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    digest = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() for name, data in files.items()}
    record = "".join(f"{name},sha256={digest[name]},{len(data)}\n" for name, data in files.items())
    files[f"{NAME}.dist-info/RECORD"] = (record + f"{NAME}.dist-info/RECORD,,\n").encode()
    wheel = f"{NAME}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return wheel


def build_sdist(sdist_directory: str, config_settings: Optional[Dict[str, Any]] = None) -> str:
    with tarfile.open(Path(sdist_directory) / f"{NAME}.tar.gz", "w:gz") as archive:
        for name in ("pyproject.toml", "backend.py", "README.md", "src"):
            archive.add(HERE / name, f"{NAME}/{name}", filter=lambda info: None if "__pycache__" in info.name else info)
    return f"{NAME}.tar.gz"
