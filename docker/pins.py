"""What a tag of the base images points to, asked of the registry: `make verify-pins`.

    python docker/pins.py [--write] [--registry URL]

Prints a line for each base in images.lock.toml and ends with 1 when a digest differs. With --write, a digest that was
empty is filled in and one that was right is marked verified; one that differs is never overwritten.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOCK = Path(__file__).with_name("images.lock.toml")
REGISTRY = "https://registry-1.docker.io"
_MANIFESTS = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in ("oci.image.index.v1", "docker.distribution.manifest.list.v2", "oci.image.manifest.v1")
)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


def main() -> None:
    """Compare every pin."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="record what was found in images.lock.toml")
    parser.add_argument("--registry", default=REGISTRY, help="address of the registry")
    options = parser.parse_args()
    wrong = False
    for section, base in bases():
        found = resolved(base["repository"], base["tag"], registry=options.registry)
        wrong |= bool(base["digest"]) and found != base["digest"]
        print(line(base, found))
        if options.write and base["digest"] in ("", found):
            record(section, found)
    sys.exit(wrong)


def bases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every base with the name of its section in the lock."""
    lock = tomllib.loads(LOCK.read_text(encoding="utf-8"))
    yield "base", lock["base"]
    for name, base in lock["alternatives"].items():
        yield f"alternatives.{name}", base


def line(base: dict[str, Any], found: str) -> str:
    """What to tell about one pin."""
    name = f"{base['repository']}:{base['tag']}"
    if not base["digest"]:
        return f"found    {name} is {found}; nothing was pinned"
    if found == base["digest"]:
        return f"ok       {name} is {found}"
    return f"DIFFERS  {name} is {found} and pinned to {base['digest']}: the tag was moved, the pin names the old image"


def resolved(repository: str, tag: str, *, registry: str = REGISTRY) -> str:
    """The digest of a tag. SystemExit, with the reason, when the registry does not tell."""
    url = f"{registry}/v2/{repository}/manifests/{tag}"
    try:
        return head(url, token=None)
    except urllib.error.HTTPError as error:
        if error.code != 401:
            raise SystemExit(f"{url}: {error.code} {error.reason}; is there such a tag?") from error
        challenge = error.headers.get("WWW-Authenticate", "")
    except OSError as error:
        raise SystemExit(f"{url}: {error}; run this on a machine that reaches the registry") from error
    return head(url, token=token(challenge))


def head(url: str, *, token: str | None) -> str:
    """The digest in the answer to a HEAD request."""
    headers = {"Accept": _MANIFESTS} | ({"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers, method="HEAD"), timeout=30) as answer:
        digest = answer.headers.get("Docker-Content-Digest", "")
    if not re.fullmatch("sha256:[0-9a-f]{64}", digest):
        raise SystemExit(f"{url}: the registry names no digest (Docker-Content-Digest is {digest!r})")
    return digest


def token(challenge: str) -> str:
    """An anonymous token, from where the registry says."""
    named = dict(_CHALLENGE.findall(challenge))
    if "realm" not in named:
        raise SystemExit(f"the registry asks for something else than a token: {challenge!r}")
    url = f"{named['realm']}?service={named.get('service', '')}&scope={named.get('scope', '')}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(json.load(answer)["token"])


def record(section: str, digest: str) -> None:
    """Write a digest that a registry has told into its section of the lock."""
    head, mark, tail = LOCK.read_text(encoding="utf-8").partition(f"[{section}]\n")
    own, gap, rest = tail.partition("\n\n")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    for field, value in (("digest", f'"{digest}"'), ("pinned", f'"{today}"'), ("verified", "true")):
        own = re.sub(rf"(?m)^{field} = .*$", f"{field} = {value}", own)
    LOCK.write_text(head + mark + own + gap + rest, encoding="utf-8")


if __name__ == "__main__":
    main()
