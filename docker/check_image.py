"""Run at the end of an image build, by the Python that runs SGLang: ends it unless the image holds what is pinned.

    python3 check_image.py VARIANT FACTS

Compares the versions of the variant's packages with images.lock.toml, and every function that the trace patch hooks or
rests on with the text that was reviewed; SGLang must find the patch as a plugin. What was found is written to FACTS.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

from known import digests
from speckit_trace.targets import HOOKED, WITNESSES, known_digests, own_digest

_GROUP = "sglang.srt.plugins"
_FLASHINFER = ("flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache")


def main(variant: str, facts: Path) -> None:
    """Check and write. SystemExit with the reason when something is not as pinned."""
    pins = tomllib.loads(Path(__file__).with_name("images.lock.toml").read_text(encoding="utf-8"))["variants"]
    if variant not in pins:
        raise SystemExit(f"VARIANT {variant!r} is not in images.lock.toml: there are {', '.join(pins)}")
    standin = os.environ.get("SPECKIT_STANDIN_BASE") == "1"
    versions = {name: installed(name) for name in (*pins[variant], *_FLASHINFER)}
    check_versions(pins[variant], versions, standin=standin)
    found = {
        "schema_version": 1,
        "variant": variant,
        "standin_base": standin,
        "versions": versions,
        "trace": check_trace(pins[variant]["sglang"]),
    }
    facts.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def check_versions(pins: dict[str, str], versions: dict[str, str | None], *, standin: bool) -> None:
    """Everything pinned is there in that version; a stand-in base holds SGLang's text and may lack the rest."""
    for name, pin in pins.items():
        missing_is_fine = standin and name != "sglang"
        # A local part (2.11.0+cu130) names the CUDA build.
        if (versions[name] or "").split("+")[0] != pin and not (versions[name] is None and missing_is_fine):
            raise SystemExit(
                f"{name} is {versions[name]} in the base image and pinned to {pin}: pin a base that holds it"
            )
    parts = {name: versions[name] for name in _FLASHINFER if versions[name] is not None}
    if len({version.split("+")[0] for version in parts.values() if version}) > 1:
        raise SystemExit(f"FlashInfer's packages differ in version: {parts}; they only work as one")


def check_trace(sglang: str) -> dict[str, str]:
    """The patch is a plugin of this SGLang, whose text is the one that was reviewed as version `sglang`."""
    plugins = {point.name: point.value for point in importlib.metadata.entry_points(group=_GROUP)}
    if plugins.get("speckit_trace") != "speckit_trace.plugin:install":
        raise SystemExit(f"SGLang would not find the trace patch: the plugins in {_GROUP} are {plugins}")
    if os.environ.get("SGLANG_PLUGINS"):
        raise SystemExit(
            f"SGLANG_PLUGINS={os.environ['SGLANG_PLUGINS']} is set in the base and can hide the trace patch"
        )
    known, found = known_digests()[sglang], source_digests()
    if strange := sorted(path for path in found if found[path] != known.get(path)):
        raise SystemExit(
            f"not the reviewed text of SGLang {sglang}: {', '.join(strange)}; the trace would not run on it"
        )
    return {"sha": own_digest(), "reviewed_as": sglang, "version": importlib.metadata.version("speckit-trace")}


def source_digests() -> dict[str, str]:
    """Digests of the reviewed functions in the SGLang that this Python would import, without importing it."""
    spec = importlib.util.find_spec("sglang")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("this Python has no SGLang: BASE_IMAGE is not an image of SGLang")
    root = Path(spec.submodule_search_locations[0]).parent
    modules = {path.rsplit(".", 2)[0].replace(".", "/") + ".py" for path in (*HOOKED, *WITNESSES)}
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "sglang.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for module in modules:
                file.write(root / module, module)
        return digests(archive)


def installed(name: str) -> str | None:
    """The version of an installed package; None when it is not there."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
