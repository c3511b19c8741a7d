"""Builds one image variant: `make image VARIANT=triton`.

    python docker/build.py VARIANT [--base NAME] [--base-image REFERENCE] [--no-cache]

Uses buildx where the client has it and Docker's older builder otherwise; both get the same arguments. `--base` names an
alternative in images.lock.toml; `--base-image` any image on this host, for a stand-in.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pins

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Build and tag."""
    lock = tomllib.loads(pins.LOCK.read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description="Build one image variant.")
    parser.add_argument("variant", choices=sorted(lock["variants"]))
    parser.add_argument("--base", choices=sorted(lock["alternatives"]), help="an alternative of images.lock.toml")
    parser.add_argument("--base-image", help="any other image, for a stand-in of the base")
    parser.add_argument("--no-cache", action="store_true", help="build every layer again")
    options = parser.parse_args()
    values = arguments(lock, options.variant, base=options.base, image=options.base_image)
    fresh = ("--no-cache",) if options.no_cache else ()
    if has_buildx():
        command = ("docker", "buildx", "bake", "--file", "docker/docker-bake.hcl", "--load", *fresh, options.variant)
        sys.exit(subprocess.run(command, cwd=ROOT, env=os.environ | values).returncode)
    tags = ("speckit:triton", "speckit:latest") if options.variant == "triton" else (f"speckit:{options.variant}",)
    words = [
        word
        for name, value in (values | {"VARIANT": options.variant}).items()
        for word in ("--build-arg", f"{name}={value}")
    ]
    tagged = [word for tag in tags for word in ("--tag", tag)]
    command = ("docker", "build", "--file", "docker/Dockerfile", *words, *tagged, *fresh, ".")
    sys.exit(subprocess.run(command, cwd=ROOT, env=os.environ | {"DOCKER_BUILDKIT": "0"}).returncode)


def arguments(lock: dict[str, Any], variant: str, *, base: str | None, image: str | None) -> dict[str, str]:
    """The build arguments; a base whose digest nobody has seen is asked for and recorded first."""
    pin = lock["alternatives"][base] if base else lock["base"]
    if image is None and not pin["digest"]:
        pin["digest"] = pins.resolved(pin["repository"], pin["tag"])
        pins.record(f"alternatives.{base}", pin["digest"])
    name = image or f"{pin['repository']}:{pin['tag']}"
    digest = local_id(image) if image else pin["digest"]
    epoch = git("log", "-1", "--format=%ct")
    return {
        "BASE_IMAGE": image or f"{pin['repository']}@{pin['digest']}",
        "BASE_NAME": name,
        "BASE_DIGEST": digest,
        "CREATED": datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "REVISION": revision(),
        "SGLANG": pin.get("sglang", lock["variants"][variant]["sglang"]),
        "SOURCE_DATE_EPOCH": epoch,
        "VERSION": kit_version(),
    }


def kit_version() -> str:
    """Of the kit, read without importing it."""
    found = re.search(r'__version__ = "([^"]+)"', (ROOT / "kit" / "__init__.py").read_text(encoding="utf-8"))
    return found[1] if found else "unknown"


def revision() -> str:
    """The commit, marked when the working tree differs from it."""
    return git("rev-parse", "HEAD") + ("-modified" if git("status", "--porcelain") else "")


def git(*words: str) -> str:
    """What git says in the repository."""
    return subprocess.run(("git", *words), cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def local_id(image: str) -> str:
    """The id of an image on this host. SystemExit when there is none."""
    done = subprocess.run(("docker", "image", "inspect", "--format", "{{.Id}}", image), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"--base-image {image}: {done.stderr.strip()}")
    return done.stdout.strip()


def has_buildx() -> bool:
    """Whether this docker client can bake."""
    return subprocess.run(("docker", "buildx", "version"), capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
