"""Haystack texts: which one is taken, how it is read, and what is said when it cannot be."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from needlepoint.errors import CorpusError, FetchError, UsageError
from needlepoint.text import corpora
from needlepoint.text.assets import HubError, HubFile
from needlepoint.text.corpora import DATASET_ID, canonical, language_of, load, slug

ENGLISH = "The river turned twice before it met the town. Nobody had counted the bridges.\n"
CHINESE = "河水在进城以前转了两个弯。没有人数过那些桥。\n"
ESSAYS, JOURNEY = "PaulGraham_Essays.txt", "Journey_to_the_West.txt"


@pytest.fixture(autouse=True)
def own_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache and home; the network refuses, with a reason that shows who was asked."""
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGINGFACE_", "MODELSCOPE_", "NEEDLEPOINT_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NEEDLEPOINT_CACHE", str(tmp_path / "cache"))

    def no_hub(repo_id: str, filename: str, **_: object) -> HubFile:
        raise HubError(f"Could not fetch {filename} of dataset {repo_id}. Nobody answered.")

    def no_asset(name: str, **_: object) -> Path:
        raise FetchError(f"Could not fetch {name!r}: no registry.")

    monkeypatch.setattr(corpora, "fetch_hub_file", no_hub)
    monkeypatch.setattr(corpora, "fetch_asset", no_asset)


@pytest.fixture
def embedded_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"sotu": ENGLISH, "sanguo": CHINESE}

    def fetch(name: str, **_: object) -> Path:
        path = tmp_path / f"{name}.txt"
        path.write_text(texts[name], "utf-8")
        return path

    monkeypatch.setattr(corpora, "fetch_asset", fetch)


def both(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ESSAYS).write_text(ENGLISH)
    (folder / JOURNEY).write_text(CHINESE, "utf-8")
    return folder


# -- canonical ---------------------------------------------------------------------------------------------------------


def test_local_path_gives_both_texts_with_names_languages_and_digests(tmp_path: Path) -> None:
    english, chinese = canonical(["english", "chinese"], local_path=both(tmp_path / "here"))
    assert (english.name, english.subset, english.language) == (
        "needle-haystack-corpus/PaulGraham_Essays",
        "english",
        "en",
    )
    assert (chinese.name, chinese.subset, chinese.language) == (
        "needle-haystack-corpus/Journey_to_the_West",
        "chinese",
        "zh",
    )
    assert (english.text, chinese.text) == (ENGLISH, CHINESE)
    assert chinese.sha256 == hashlib.sha256(CHINESE.encode()).hexdigest()
    assert [corpus.subset for corpus in canonical(["chinese"], local_path=tmp_path / "here")] == ["chinese"]


def test_text_is_read_as_python_text_mode_reads_it(tmp_path: Path) -> None:
    folder = both(tmp_path / "here")
    data = "\ufeffone\r\ntwo\rthree\n\r\r\nfour\x85\u2028".encode()
    (folder / ESSAYS).write_bytes(data)
    (corpus,) = canonical(["english"], local_path=folder)
    with (folder / ESSAYS).open(encoding="utf-8") as file:
        assert corpus.text == file.read() == "\ufeffone\ntwo\nthree\n\n\nfour\x85\u2028"
    assert corpus.sha256 == hashlib.sha256(data).hexdigest()


def test_a_missing_file_in_local_path_is_an_error_that_lists_the_folder(tmp_path: Path, embedded_at_hand: None) -> None:
    folder = both(tmp_path / "here")
    (folder / JOURNEY).rename(folder / "journey.txt")
    with pytest.raises(CorpusError, match=rf"no {JOURNEY} in .*here. It holds: {ESSAYS}, journey.txt\."):
        canonical(["english", "chinese"], local_path=folder)
    assert canonical(["english"], local_path=folder)[0].text == ENGLISH


def test_a_local_path_that_is_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="nowhere does not exist"):
        canonical(["english"], local_path=tmp_path / "nowhere")
    with pytest.raises(CorpusError, match="is a file, not a folder"):
        canonical(["english"], local_path=both(tmp_path / "here") / ESSAYS)


def test_text_that_is_not_utf8_is_an_error_with_the_offset(tmp_path: Path) -> None:
    folder = both(tmp_path / "here")
    (folder / ESSAYS).write_bytes(b"plain \xff text")
    with pytest.raises(CorpusError, match="not UTF-8: byte 0xff at offset 6"):
        canonical(["english"], local_path=folder)


def test_dataset_id_may_be_a_folder_and_a_path_that_is_none_is_an_error(tmp_path: Path) -> None:
    assert canonical(["english"], dataset_id=str(both(tmp_path / "here")))[0].text == ENGLISH
    with pytest.raises(CorpusError, match="neither a folder here nor a dataset's name"):
        canonical(["english"], dataset_id=str(tmp_path / "nowhere"))


@pytest.mark.parametrize("layout", ["datasets", "hub/datasets", "."])
def test_dataset_dir_is_searched_as_a_hub_cache(tmp_path: Path, layout: str) -> None:
    both(tmp_path / "root" / layout / DATASET_ID)
    assert canonical(["chinese"], dataset_dir=tmp_path / "root")[0].text == CHINESE


def test_the_caches_of_modelscope_and_hugging_face_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both(tmp_path / "home" / ".cache" / "modelscope" / "hub" / "datasets" / DATASET_ID)
    assert canonical(["english"])[0].text == ENGLISH
    flat = DATASET_ID.replace("/", "--")
    snapshot = both(tmp_path / "hf" / "hub" / f"datasets--{flat}" / "snapshots" / "abc")
    (snapshot / ESSAYS).write_text("From the other cache.\n")
    monkeypatch.setenv("MODELSCOPE_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    assert canonical(["english"])[0].text == "From the other cache.\n"


def test_a_hub_is_asked_where_no_cache_has_it_and_downloads_go_below_dataset_dir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str, Path | None]] = []

    def fetch(repo_id: str, filename: str, *, kind: str, root: Path | None, progress: object) -> HubFile:
        asked.append((repo_id, filename, root))
        path = both(tmp_path / "fetched") / filename
        return HubFile(path=path, sha256="", source_url="https://hub.example")

    monkeypatch.setattr(corpora, "fetch_hub_file", fetch)
    assert [corpus.text for corpus in canonical(["chinese", "english"], dataset_dir="~/set")] == [CHINESE, ENGLISH]
    root = tmp_path / "home" / "set"
    assert asked == [(DATASET_ID, JOURNEY, root), (DATASET_ID, ESSAYS, root)]


def test_where_no_hub_answers_the_embedded_texts_serve_with_one_notice(embedded_at_hand: None) -> None:
    notices: list[str] = []
    english, chinese = canonical(["english", "chinese"], notify=notices.append)
    assert (english.name, chinese.name) == ("sotu", "sanguo")
    assert (english.subset, chinese.subset) == ("english", "chinese")
    assert english.licence == "public domain"
    (notice,) = notices
    assert "Nobody answered." in notice and "sotu for english, sanguo for chinese instead" in notice
    assert "local_path" in notice and "\n" not in notice


def test_a_text_that_is_cached_is_kept_when_the_other_must_be_replaced(tmp_path: Path, embedded_at_hand: None) -> None:
    folder = both(tmp_path / "root" / "datasets" / DATASET_ID)
    (folder / JOURNEY).unlink()
    names = [corpus.name for corpus in canonical(["chinese", "english"], dataset_dir=tmp_path / "root")]
    assert names == ["sanguo", "needle-haystack-corpus/PaulGraham_Essays"]


def test_where_nothing_can_be_reached_the_error_names_the_ways_out() -> None:
    with pytest.raises(FetchError, match=r"(?s)Nobody answered.*no registry.*local_path.*--corpus PATH"):
        canonical(["english"])


def test_another_dataset_and_an_explicit_canonical_never_fall_back(embedded_at_hand: None) -> None:
    for ask in (lambda: canonical(["english"], dataset_id="someone/else"), lambda: load("canonical")):
        with pytest.raises(FetchError, match=r"Nobody answered.*local_path.*--corpus PATH"):
            ask()


def test_an_unknown_subset_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="Did you mean 'english'"):
        canonical(["englisch"])


# -- load --------------------------------------------------------------------------------------------------------------


def test_names_give_the_embedded_texts(embedded_at_hand: None) -> None:
    assert [(corpus.name, corpus.subset) for corpus in load("embedded")] == [("sotu", "english"), ("sanguo", "chinese")]
    assert [(corpus.name, corpus.subset) for corpus in load("sanguo")] == [("sanguo", "chinese")]
    assert [(corpus.name, corpus.subset) for corpus in load("mine=sotu")] == [("sotu", "mine")]
    with pytest.raises(UsageError, match="drop 'mine='"):
        load("mine=embedded")


def test_a_file_is_a_corpus_named_after_it(tmp_path: Path) -> None:
    path = tmp_path / "My Notes_v2.txt"
    path.write_bytes(ENGLISH.replace("\n", "\r\n").encode())
    (corpus,) = load(str(path))
    assert (corpus.text, corpus.subset, corpus.language) == (ENGLISH, "my-notes-v2", "en")
    assert (corpus.licence, corpus.source) == ("user's own", str(path))
    assert corpus.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert load(f"legal={path}")[0].subset == "legal"


def test_a_name_wins_over_a_file_and_a_path_with_an_equals_sign_over_a_subset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedded_at_hand: None
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sotu").write_text("Mine.")
    Path("a=b.txt").write_text("Both.")
    assert load("sotu")[0].text == ENGLISH
    assert load("./sotu")[0].text == "Mine."
    assert load("a=b.txt")[0].text == "Both."


def test_a_folder_is_read_in_order_without_hidden_and_binary_files(tmp_path: Path) -> None:
    docs = tmp_path / "Docs"
    for name, body in {
        "b.md": b"Second.\n",
        "a/z.txt": b"First.\n",
        "c.rst": b"Third.",
        ".git/x.txt": b"hidden",
        ".y.txt": b"hidden",
        "page.html": b"<p>no</p>",
        "empty.txt": b"  \n",
        "bad.txt": b"a\0b\0\0c",
        "d.jsonl": b'{"text": "Fourth."}\n',
        "e.txt.gz": gzip.compress(b"Fifth."),
    }.items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_bytes(body)
    notices: list[str] = []
    (corpus,) = load(str(docs), notify=notices.append)
    assert corpus.text == "First.\n\nSecond.\n\nThird.\n\nFourth.\n\nFifth."
    assert corpus.subset == "docs"
    assert len(notices) == 1 and "Skipped: " in notices[0] and "bad.txt is not a text" in notices[0]
    lines = [(docs / name, name) for name in ("a/z.txt", "b.md", "c.rst", "d.jsonl", "e.txt.gz")]
    listed = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n" for path, name in lines)
    assert corpus.sha256 == hashlib.sha256(listed.encode()).hexdigest()


def test_a_glob_takes_what_it_matches_whatever_the_suffix(tmp_path: Path) -> None:
    for name in ("docs/a.py", "docs/deep/b.py", "docs/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (corpus,) = load(str(tmp_path / "docs" / "**" / "*.py"))
    assert (corpus.text, corpus.subset) == ("docs/a.py\n\ndocs/deep/b.py", "docs")
    with pytest.raises(CorpusError, match="No file matches"):
        load(str(tmp_path / "*.md"))


def test_a_folder_without_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="holds no text file"):
        load(str(tmp_path))
    (tmp_path / "a.txt").write_text(" \n")
    with pytest.raises(CorpusError, match="The only file"):
        load(str(tmp_path))


def test_jsonl_gives_the_field_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"text": "One.", "meta": {"body": "uno"}, "a.b": "x", "parts": ["p"]},
        {"text": "Two.\r\n", "meta": {"body": ""}, "a.b": "y", "parts": ["q"]},
    ]
    path.write_text("\n\n".join(json.dumps(row) for row in rows) + "\n")
    assert load(str(path))[0].text == "One.\n\nTwo.\n"
    assert load(f"{path}#meta.body")[0].text == "uno"
    assert load(f"{path}#a.b")[0].text == "x\n\ny"
    assert load(f"legal={path}#parts.0")[0].subset == "legal"


@pytest.mark.parametrize(
    ("line", "wanted", "says"),
    [
        ('{"body": "x"}', "", r"line 3: no field 'text' \(it has: body\)"),
        ('{"text": 7}', "", r"line 3: no text in field 'text'"),
        ('{"text": "x"', "", r"line 3: not JSON"),
        ('["x"]', "", r"line 3: no field 'text'"),
        ('{"text": "\\ud800"}', "", r"line 3: .*surrogate"),
        ('{"text": "x"}', "#", r"names no field"),
    ],
)
def test_a_bad_line_of_jsonl_is_an_error_with_its_number(tmp_path: Path, line: str, wanted: str, says: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "fine"}\n\n' + line + "\n")
    with pytest.raises(CorpusError, match=says):
        load(f"{path}{wanted}")


def test_a_field_of_a_file_that_is_not_jsonl_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(CorpusError, match="is not JSONL"):
        load(f"{tmp_path}/a.txt#text")


def test_gzip_is_read_through_and_damage_in_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt.gz"
    path.write_bytes(gzip.compress(ENGLISH.encode()))
    (corpus,) = load(str(path))
    assert (corpus.text, corpus.subset) == (ENGLISH, "notes")
    assert corpus.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(CorpusError, match="gzip with damage"):
        load(str(path))


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(CorpusError, match="is empty"):
        load(str(tmp_path / "a.txt"))


def test_the_named_encoding_is_used(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Привет, мир".encode("koi8-r"))
    assert load(str(path), encoding="koi8-r")[0].text == "Привет, мир"
    with pytest.raises(CorpusError, match="--encoding"):
        load(str(path))


def test_an_unknown_name_is_an_error_with_what_is_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("x")
    with pytest.raises(CorpusError, match=r"no file, folder or corpus 'sangou'\. Did you mean 'sanguo'"):
        load("sangou")
    with pytest.raises(CorpusError, match=r"Did you mean 'notes.txt'"):
        load("note.txt")
    for odd in ("x" * 5000, "a\0b", "", "~nobody-at-all/x"):
        with pytest.raises(CorpusError):
            load(odd)


@given(st.text(max_size=40))
def test_no_spec_ends_in_anything_but_a_corpus_or_a_clear_error(spec: str) -> None:
    try:
        load("\0/" + spec)
    except CorpusError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (CHINESE, "zh"),
        (CHINESE + ENGLISH[:30], "zh"),
        ("Les élèves étaient déjà arrivés à l'école.", "en"),
        ("今日は天気がとても良いです。私たちは公園へ行きました。", "other"),
        ("Сегодня очень хорошая погода.", "other"),
        ("오늘은 날씨가 아주 좋습니다.", "other"),
        ("1234 ... 5678", "other"),
        (CHINESE * 20_000, "zh"),
    ],
)
def test_the_language_is_told_from_the_letters(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_slug_is_never_empty() -> None:
    assert [slug(name) for name in ("My Notes_v2", "红楼梦", "!!!")] == ["my-notes-v2", "红楼梦", "corpus"]
