"""A stand-in for SGLang's official image: Debian's files, the real SGLang wheel without its dependencies, no GPU code.

    python .ci/standin_base.py FOLDER        writes FOLDER/base.tar, for `docker load`

It lets the real Dockerfile be built where the official image (some 20 GB) is not to be had: Python, pip, and the text
of SGLang, in which the trace patch has to find everything that it hooks. It cannot serve a model. The same input gives
the same image id, so a second build finds its layers in the cache.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EPOCH = 1_764_460_800
TAG = "speckit-standin-base:latest"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
PACKAGES = "usr/lib/python3/dist-packages"


def main(folder: Path) -> None:
    """Make what is missing in `folder`, then the archive."""
    folder.mkdir(parents=True, exist_ok=True)
    layers = [debian(folder), certificates(), sglang(folder)]
    write_archive(folder / "base.tar", layers)


def debian(folder: Path) -> bytes:
    """Debian 12 with Python and pip, by mmdebstrap, which repeats itself bit for bit."""
    root = folder / "debian.tar"
    if not root.exists():
        command = ("mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,python3-pip,ca-certificates")
        part = folder / "part.tar"
        mirror = os.environ.get("SPECKIT_DEBIAN", "http://deb.debian.org/debian")
        subprocess.run(
            (*command, "bookworm", part, mirror), check=True, env=os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH)}
        )
        part.rename(root)
    return root.read_bytes()


def certificates() -> bytes:
    """The certificates that this machine trusts, so that pip in a build reaches what pip here reaches."""
    return layer([(CERTIFICATES, Path("/", CERTIFICATES).read_bytes())])


def sglang(folder: Path) -> bytes:
    """The files of the pinned wheel, where Debian's Python finds them."""
    version = tomllib.loads((ROOT / "docker" / "images.lock.toml").read_text())["variants"]["triton"]["sglang"]
    pattern = f"sglang-{version}-*.whl"
    if not list(folder.glob(pattern)):
        python = sys.executable if find_spec("pip") else "python3"
        pip = (python, "-m", "pip", "download", "--quiet", "--no-deps", "--python-version", "3.11")
        subprocess.run((*pip, "--only-binary=:all:", "--dest", folder, f"sglang=={version}"), check=True)
    with zipfile.ZipFile(next(folder.glob(pattern))) as wheel:
        names = sorted(name for name in wheel.namelist() if not name.endswith("/"))
        return layer([(f"{PACKAGES}/{name}", wheel.read(name)) for name in names])


def layer(files: list[tuple[str, bytes]]) -> bytes:
    """A tar of these files, owned by root, all of one date."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            add(archive, name, content)
    return buffer.getvalue()


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """One file of fixed date and rights."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(content), EPOCH, 0o644
    archive.addfile(entry, io.BytesIO(content))


def write_archive(path: Path, layers: list[bytes]) -> None:
    """A docker-archive of the layers, whose configuration has a fixed date."""
    config = json.dumps(configuration(layers), sort_keys=True, separators=(",", ":")).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    files = dict(named(layers))
    manifest = json.dumps([{"Config": name, "RepoTags": [TAG], "Layers": list(files)}]).encode()
    with tarfile.open(path, "w") as archive:
        for file, content in {**files, name: config, "manifest.json": manifest}.items():
            add(archive, file, content)


def named(layers: list[bytes]) -> Iterator[tuple[str, bytes]]:
    """Each layer under its digest."""
    for content in layers:
        yield f"{hashlib.sha256(content).hexdigest()}/layer.tar", content


def configuration(layers: list[bytes]) -> dict[str, object]:
    """What the engine reads beside the layers; the label says that this is no SGLang image."""
    trust = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    created = datetime.fromtimestamp(EPOCH, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": {
            "Env": [path, "SPECKIT_STANDIN_BASE=1", *(f"{name}=/{CERTIFICATES}" for name in trust)],
            "Labels": {"org.speckit.standin-base": "1"},
        },
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}" for content in layers],
        },
        "history": [{"created": created, "created_by": "stand-in base"} for _ in layers],
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
