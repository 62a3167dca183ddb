"""The run folder: whatever ends a run, no finished line is lost and nothing broken is left."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from needlepoint.ask import journal, lock
from needlepoint.ask.folders import slug
from needlepoint.ask.records import dump, to_json
from needlepoint.ask.store import RunFolder, RunSettings
from needlepoint.errors import InputError, OutputError, UsageError
from needlepoint.types import Failure, Reply, Score, Trial

from .rows import REPLY, a_failure, a_trial, replies, trials

HERE = Path(__file__).parent
SETTINGS = RunSettings(
    identity={"lengths": [1000, 4000], "depths": [0, 50], "seed": 0, "generation": {"temperature": 0}},
    free={"concurrency": 8},
    versions={"needlepoint": "0.1.0"},
    endpoint={"server": "vLLM"},
    corpora={"english": {"name": "test", "sha256": "c" * 64, "source": "/here"}},
    tokenizer={"name": "qwen3", "fingerprint": "f" * 16, "chat_template": "chatml"},
    max_tokens=512,
    limit_tokens=16_000,
    created="2026-11-18T22:33:28Z",
)
SECRET = "sk-live-0123456789abcdef"
in_memory = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder.create(tmp_path, model="Qwen/Qwen3-0.6B", settings=SETTINGS) as made:
        yield made


def reopened(path: Path, *, for_writing: bool = False) -> list[tuple[Trial, Reply]]:
    with RunFolder.open(path, for_writing=for_writing) as run:
        return list(run.replies())


def run_script(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    head = f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
    command = [sys.executable, "-W", "error", "-c", head + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


# --- making and finding -----------------------------------------------------------------------------------------------


def test_a_folder_is_named_after_time_and_model_and_never_used_twice(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        with RunFolder.create(tmp_path / "out", model="Qwen/Qwen3-0.6B", settings=SETTINGS) as made:
            names.append(made.path.name)
    first = "20261118T223328Z_Qwen-Qwen3-0.6B"
    assert names == [first, f"{first}-2", f"{first}-3"]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4.1-mini", "gpt-4.1-mini"),
        ("/home/me/models/tiny.Q4_1.gguf", "tiny.Q4_1.gguf"),
        (r"C:\models\tiny.gguf", "tiny.gguf"),
        ("models/tiny.gguf", "tiny.gguf"),
        ("../..", "model"),
        ("..", "model"),
        ("", "model"),
        ("a b:c*d?", "a-b-c-d"),
        ("智谱/GLM 5", "智谱-GLM-5"),
        ("x" * 500, "x" * 60),
        ("bad\udcff\0name\n", "bad-name"),
    ],
)
def test_any_models_name_makes_a_file_name(model: str, name: str) -> None:
    assert slug(model) == name


def test_what_a_run_was_made_with_comes_back(folder: RunFolder) -> None:
    folder.close()
    with RunFolder.open(folder.path, for_writing=False) as run:
        assert run.settings == SETTINGS
    written = json.loads((folder.path / "run.json").read_text(encoding="utf-8"))
    assert written["schema"] == 1 and written["identity"]["lengths"] == [1000, 4000] and written["resumed"] == []


def test_a_work_dir_with_one_run_stands_for_it(folder: RunFolder, tmp_path: Path) -> None:
    folder.append(a_trial(), REPLY)
    (tmp_path / "notes").mkdir()
    assert len(reopened(tmp_path)) == 1


def test_a_work_dir_with_several_runs_says_which(folder: RunFolder, tmp_path: Path) -> None:
    RunFolder.create(tmp_path, model="other", settings=SETTINGS).close()
    with pytest.raises(UsageError, match=r"holds 2 runs.*20261118T223328Z_other, 20261118T223328Z_Qwen"):
        RunFolder.open(tmp_path, for_writing=False)


def test_what_is_no_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path, says in (
        (tmp_path, "no run.json"),
        (tmp_path / "gone", "does not exist"),
        (tmp_path / "file", "not a folder"),
    ):
        with pytest.raises(InputError, match=says):
            RunFolder.open(path, for_writing=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "is no JSON"),
        (b"[]", "no JSON object"),
        (b"{}", "no schema number"),
        (b'{"schema":true}', "no schema number"),
        (b'{"schema":2}', "schema 2, and this needlepoint reads 1"),
        (b'{"schema":1}', "'identity' is not an object"),
        (b'{"schema":1,"identity":{},"free":3}', "'free' is not an object"),
        (b'{"schema":1,"identity":{},"max_tokens":"5"}', "'max_tokens' is not a whole number"),
        (b'{"schema":1,"identity":{}}', "'created' is not a time"),
    ],
)
def test_a_broken_run_json_says_what_is_wrong(folder: RunFolder, content: bytes, says: str) -> None:
    folder.close()
    (folder.path / "run.json").write_bytes(content)
    with pytest.raises(InputError, match=says):
        RunFolder.open(folder.path, for_writing=True)
    (folder.path / "run.json").write_bytes(b'{"schema":1,"identity":{},"created":"x","new":1}')
    RunFolder.open(folder.path, for_writing=True).close()  # the lock was given back


# --- appending and reading --------------------------------------------------------------------------------------------


@in_memory
@given(rows=st.lists(st.tuples(trials, replies), max_size=5))
def test_what_is_appended_comes_back(rows: list[tuple[Trial, Reply]]) -> None:
    with tempfile.TemporaryDirectory() as work_dir:
        with RunFolder.create(Path(work_dir), model="m", settings=SETTINGS) as made:
            for number, (trial, reply) in enumerate(rows):
                made.append(replace(trial, repeat=number), reply)
            before = list(made.replies())
        assert before == [(replace(trial, repeat=number), reply) for number, (trial, reply) in enumerate(rows)]
        assert reopened(made.path) == before


def test_the_last_reply_of_a_trial_counts_in_the_place_of_the_first(folder: RunFolder) -> None:
    first, second = a_trial(0), a_trial(1)
    folder.append(first, a_failure())
    folder.append(second, REPLY)
    folder.append(first, REPLY)
    assert list(folder.replies()) == [(first, REPLY), (second, REPLY)]
    assert reopened(folder.path) == [(first, REPLY), (second, REPLY)]
    assert folder.n_replies == 2
    assert len((folder.path / "trials.jsonl").read_bytes().splitlines()) == 3


def test_a_trial_asked_again_with_more_room_replaces_its_own_earlier_reply(folder: RunFolder) -> None:
    short, long = a_trial(0, max_tokens=512), a_trial(0, max_tokens=4096)
    out_of_room = Reply(finish="length", reasoning="Let me")
    folder.append(short, out_of_room)
    folder.append(a_trial(1), REPLY)
    assert folder.is_settled(short)
    assert folder.resume(replace(SETTINGS, max_tokens=4096)) == ["max_tokens: 512 → 4096"]
    assert not folder.is_settled(long)
    assert folder.is_settled(a_trial(1, max_tokens=4096))  # valid under the old limit: stays
    folder.append(long, REPLY)
    assert folder.is_settled(long)
    assert [trial for trial, _ in folder.replies()] == [long, a_trial(1)]
    assert list(folder.all_replies()) == [out_of_room, REPLY, REPLY]  # what was paid for stays paid for
    assert folder.finished(short.id) and folder.finished(long.id) and not folder.finished("none")
    folder.close()
    with RunFolder.open(folder.path, for_writing=False) as run:
        assert run.is_settled(long) and [entry.max_tokens for entry in run.entries()] == [4096, 512]


def test_a_changed_limit_asks_overflows_again_and_remembers_which_were(folder: RunFolder) -> None:
    folder.append(a_trial(0), a_failure("overflow"))
    folder.append(a_trial(1), a_failure("overflow"))
    larger = replace(SETTINGS, limit_tokens=32_000)
    folder.resume(larger)
    folder.append(a_trial(0), a_failure("overflow"))
    folder.close()
    with RunFolder.open(folder.path, for_writing=True) as run:  # interrupted: the second was not reached
        assert run.resume(larger) == []
        assert [run.is_settled(a_trial(number)) for number in range(3)] == [True, False, False]


def test_what_a_scorer_says_decides_what_is_asked_again(folder: RunFolder) -> None:
    folder.append(a_trial(), REPLY)
    assert folder.is_settled(a_trial()) and folder.is_settled(a_trial(), "wrong")
    assert not folder.is_settled(a_trial(), "failed")


def test_reading_goes_on_while_another_writes(folder: RunFolder) -> None:
    folder.append(a_trial(0), REPLY)
    with RunFolder.open(folder.path, for_writing=False) as run:
        folder.append(a_trial(1), REPLY)
        assert len(list(run.replies())) == 1
        with pytest.raises(OutputError, match="not open for writing"):
            run.append(a_trial(2), REPLY)
        with pytest.raises(OutputError, match="reading only"):
            run.write_text("report.json", "{}")


def test_a_closed_folder_takes_no_more(folder: RunFolder) -> None:
    folder.close()
    folder.close()
    with pytest.raises(OutputError, match="not open for writing"):
        folder.append(a_trial(), REPLY)


# --- torn and broken lines --------------------------------------------------------------------------------------------


def test_wherever_the_file_is_cut_whole_lines_are_kept_and_the_torn_one_is_mended(folder: RunFolder) -> None:
    rows = [(a_trial(number), replace(REPLY, text="答" * number)) for number in range(3)]
    for trial, reply in rows:
        folder.append(trial, reply)
    folder.close()
    path = folder.path / "trials.jsonl"
    data = path.read_bytes()
    ends = [at for at, byte in enumerate(data) if byte == 10]
    cuts = [*range(0, len(data) + 1, 13), *ends, *(end + 1 for end in ends), *(end - 1 for end in ends)]
    new = (a_trial(9), REPLY)
    for cut in cuts:
        path.write_bytes(data[:cut])
        whole = rows[: sum(end <= cut for end in ends)]
        assert reopened(folder.path) == whole
        assert path.read_bytes() == data[:cut], "reading changes nothing"
        with RunFolder.open(folder.path, for_writing=True) as run:
            run.append(*new)
        assert reopened(folder.path) == [*whole, new]
        assert path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize("tail", [b"\0" * 5000, b'{"trial":', b"\xff\xfe", b"garbage" * 20_000, b"3", b"[]"])
def test_any_torn_tail_is_cut_off_before_writing(folder: RunFolder, tail: bytes) -> None:
    folder.append(a_trial(0), REPLY)
    folder.close()
    path = folder.path / "trials.jsonl"
    data = path.read_bytes()
    path.write_bytes(data + tail)
    assert len(reopened(folder.path)) == 1
    assert len(reopened(folder.path, for_writing=True)) == 1
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{broken", r"trials\.jsonl: line 2 is no JSON"),
        (b"[]", "line 2 is no JSON object"),
        (b"\xff", "line 2 is no JSON"),
        (b"{}", r"line 2 is not what it must be: it\.trial is missing"),
        (dump({"trial": to_json(a_trial()), "reply": {"text": 3}, "at": "x"}), r"line 2 .*it\.reply\.text is 3"),
    ],
)
@pytest.mark.parametrize("for_writing", [False, True])
def test_a_broken_line_in_the_middle_is_named_with_the_way_out(
    folder: RunFolder, line: bytes, says: str, for_writing: bool
) -> None:
    folder.append(a_trial(0), REPLY)
    folder.close()
    path = folder.path / "trials.jsonl"
    good = path.read_bytes()
    path.write_bytes(good + line + b"\n" + good)
    with pytest.raises(InputError, match=says + r".*remove that line"):
        RunFolder.open(folder.path, for_writing=for_writing)
    assert path.read_bytes() == good + line + b"\n" + good
    path.write_bytes(good + b"\n \n" + good)  # empty lines do no harm
    assert len(reopened(folder.path, for_writing=for_writing)) == 1


KILLED = """
import os, random, signal, time
from dataclasses import replace
from pathlib import Path
from needlepoint.ask.store import RunFolder, RunSettings
import rows
rng = random.Random(5)
made = RunFolder.create(Path(sys.argv[1]), model="m", settings=RunSettings(identity={"a": 1}))
made.close()
trials = [rows.a_trial(number) for number in range(20_000)]
known, torn, last = {}, 0, 0
for round in range(50):
    reading, writing = os.pipe()
    sizes = random.Random(round)
    pid = os.fork()
    if pid == 0:
        run = RunFolder.open(made.path, for_writing=True)
        for number in range(last, len(trials)):
            size = sizes.choice([1, 100, 10_000, 10_000, 1_000_000])
            run.append(trials[number], replace(rows.REPLY, text="x" * size))
            os.write(writing, b"%d %d\\n" % (number, size))
        os._exit(1)
    os.close(writing)
    wanted, got = rng.randrange(8), b""
    while got.count(b"\\n") < wanted:
        got += os.read(reading, 10)
    until = time.perf_counter() + rng.random() * 0.003
    while time.perf_counter() < until:
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    while part := os.read(reading, 65536):
        got += part
    os.close(reading)
    for line in got.split(b"\\n")[:-1]:
        number, size = map(int, line.split())
        known[number] = size
    torn += not (made.path / "trials.jsonl").read_bytes()[-1:] in (b"\\n", b"")
    with RunFolder.open(made.path, for_writing=round % 2 == 0) as run:
        found = {trial.repeat: len(reply.text) for trial, reply in run.replies()}
    assert known.items() <= found.items(), "a finished line was lost"
    assert len(found) - len(known) <= 1, "more than the one in flight"
    known = found
    last = len(found)
    if len((made.path / "trials.jsonl").read_bytes()) > 8_000_000:
        (made.path / "trials.jsonl").write_bytes(b"")
        known, last = {}, 0
print("survived", torn)
"""


def test_a_run_killed_at_50_moments_never_loses_a_finished_line(tmp_path: Path) -> None:
    done = run_script(KILLED, tmp_path)
    assert done.stdout.startswith("survived"), done.stderr


def test_an_interrupt_in_the_middle_of_a_write_breaks_nothing(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.append(a_trial(0), REPLY)
    write = os.write

    def interrupted(handle: int, data: Any) -> int:
        write(handle, data[: len(data) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(journal.os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        folder.append(a_trial(1), REPLY)
    monkeypatch.undo()
    folder.append(a_trial(2), REPLY)
    assert [trial.repeat for trial, _ in folder.replies()] == [0, 2]
    assert reopened(folder.path) == list(folder.replies())


def test_lines_reach_the_disk_from_time_to_time_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(journal.os, "fsync", synced.append)
    time = [0.0]
    lines = journal.Journal(tmp_path / "log", way_out="", clock=lambda: time[0])
    for second in range(12):
        time[0] = second
        lines.append(b"{}")
    assert len(synced) == 2
    lines.close()
    assert len(synced) == 3


# --- one writer -------------------------------------------------------------------------------------------------------

HOLDS = """
from pathlib import Path
from needlepoint.ask import lock
if sys.argv[2] == "pid":
    lock.fcntl = None
from needlepoint.ask.store import RunFolder
run = RunFolder.open(Path(sys.argv[1]), for_writing=True)
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def another_process_on(path: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    code = "import sys\n" + HOLDS
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("kind", ["flock", "pid"])
def test_a_second_process_is_refused_until_the_first_is_gone(
    folder: RunFolder, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.close()
    if kind == "pid":
        monkeypatch.setattr(lock, "fcntl", None)
    with another_process_on(folder.path, kind) as process:
        with pytest.raises(UsageError, match=rf"in use by another needlepoint \(process {process.pid} on "):
            RunFolder.open(folder.path, for_writing=True)
        assert reopened(folder.path) == []  # reading is fine
        process.kill()
        process.wait()
        with RunFolder.open(folder.path, for_writing=True) as run:
            run.append(a_trial(), REPLY)
    assert len(reopened(folder.path)) == 1


@pytest.mark.parametrize("kind", ["flock", "pid", "unsupported"])
def test_one_process_cannot_write_twice_at_once_and_says_so(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "pid":
        monkeypatch.setattr(lock, "fcntl", None)
    elif kind == "unsupported":

        def unsupported(*_: object) -> None:
            raise OSError(lock.errno.ENOLCK, "No locks available")

        monkeypatch.setattr(lock.fcntl, "flock", unsupported)
    with (
        RunFolder.create(tmp_path, model="m", settings=SETTINGS) as made,
        pytest.raises(UsageError, match="already open for writing in this process"),
    ):
        RunFolder.open(made.path, for_writing=True)
    for _ in range(2):
        RunFolder.open(made.path, for_writing=True).close()


def test_a_forgotten_folder_gives_its_lock_back(tmp_path: Path) -> None:
    path = RunFolder.create(tmp_path, model="m", settings=SETTINGS).path
    RunFolder.open(path, for_writing=True).close()


@pytest.mark.parametrize(
    ("holder", "refused"),
    [
        (f"{os.getpid()} {lock.socket.gethostname()}", False),
        (f"1 {lock.socket.gethostname()}", True),
        (f"{2**40} {lock.socket.gethostname()}", True),
        ("1 elsewhere", True),
        ("x y", True),
        ("", True),
    ],
)
def test_a_pid_file_counts_as_left_behind_only_if_that_is_sure(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, holder: str, refused: bool
) -> None:
    folder.close()
    monkeypatch.setattr(lock, "fcntl", None)
    (folder.path / ".lock.pid").write_text(holder)
    if refused:
        with pytest.raises(UsageError, match=r"delete .*\.lock\.pid if that process is gone"):
            RunFolder.open(folder.path, for_writing=True)
    else:
        RunFolder.open(folder.path, for_writing=True).close()
        assert not (folder.path / ".lock.pid").exists()


# --- when nothing can be written --------------------------------------------------------------------------------------

FULL = """
import resource
from pathlib import Path
from dataclasses import replace
from needlepoint.ask.store import RunFolder
from needlepoint.errors import OutputError
import rows
with RunFolder.open(Path(sys.argv[1]), for_writing=True) as run:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    number = 0
    try:
        while True:
            run.append(rows.a_trial(number), rows.REPLY)
            number += 1
    except OutputError as error:
        print(number, error.exit_code, error)
    try:
        run.append(rows.a_trial(number), rows.REPLY)
    except OutputError as error:
        print("again", error)
    try:
        run.write_text("report.json", "x" * 30_000)
    except OutputError as error:
        print("report", error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    run.append(rows.a_trial(number), rows.REPLY)
    assert run.n_replies == number + 1
"""


def test_a_full_disk_keeps_all_before_and_says_how_to_go_on(folder: RunFolder) -> None:
    folder.close()
    done = run_script(FULL, folder.path)
    assert done.returncode == 0, done.stderr
    first, again, report = done.stdout.splitlines()
    number, code, message = first.split(" ", 2)
    assert int(number) > 5 and code == "2"
    assert "File too large" in message and "All replies before are safe" in message
    assert f"--use-cache {folder.path}" in message
    assert again.startswith("again Cannot write") and report.startswith("report Cannot write")
    assert [trial.repeat for trial, _ in reopened(folder.path)] == list(range(int(number) + 1))
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "run.json", "trials.jsonl"]


def test_a_disk_that_is_full_from_the_start_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(lock.errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"No space left on device\. Choose another place with --work-dir\.$"):
        RunFolder.create(tmp_path, model="m", settings=SETTINGS)
    assert list(tmp_path.iterdir()) == []


READ_ONLY = """
import os
from pathlib import Path
from needlepoint.ask.store import RunFolder, RunSettings
from needlepoint.errors import OutputError
import rows
path = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
with RunFolder.open(path, for_writing=False) as run:
    print(len(list(run.replies())))
for tried in (lambda: RunFolder.open(path, for_writing=True),
              lambda: RunFolder.create(path, model="m", settings=RunSettings(identity={})),
              lambda: RunFolder.create(path / "deeper", model="m", settings=RunSettings(identity={}))):
    try:
        tried()
    except OutputError as error:
        print(error)
"""


@pytest.mark.parametrize("locked_before", [True, False])
def test_a_read_only_folder_can_be_read_and_says_so_when_it_is_to_be_written(locked_before: bool) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        Path(name).chmod(0o755)
        with RunFolder.create(Path(name), model="m", settings=SETTINGS) as made:
            made.append(a_trial(), REPLY)
        if not locked_before:
            (made.path / ".lock").unlink()
        made.path.chmod(0o555)
        for path in made.path.iterdir():
            path.chmod(0o444)
        done = run_script(READ_ONLY, made.path)
        made.path.chmod(0o755)
    assert done.returncode == 0, done.stderr
    count, opened, created, deeper = done.stdout.splitlines()
    assert count == "1"
    assert opened.startswith("Cannot write in") and "Permission denied" in opened and "writable" in opened
    assert all("Permission denied" in line and "--work-dir" in line for line in (created, deeper))


# --- resuming ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"identity": {**SETTINGS.identity, "lengths": [1000, 8000]}}, "lengths: 1k,4k → 1k,8k"),
        ({"identity": {**SETTINGS.identity, "lengths": [1000, 4096]}}, "lengths: 1k,4k → 1k,4096"),
        ({"identity": {**SETTINGS.identity, "seed": 1000}}, "seed: 0 → 1000"),
        ({"identity": {**SETTINGS.identity, "seed": None}}, "seed: 0 → (not set)"),
        ({"identity": {**SETTINGS.identity, "needle": "x"}}, "needle: (not set) → x"),
        ({"identity": {**SETTINGS.identity, "generation": {"temperature": 0.7}}}, "generation.temperature: 0 → 0.7"),
        ({"corpora": {"english": {"sha256": "d" * 64}}}, "corpus english: ccccc"),
        ({"corpora": {}}, "corpus english: ccccc"),
        (
            {"tokenizer": {"fingerprint": "0" * 16, "chat_template": "chatml"}},
            "tokenizer fingerprint: ffffffffffffffff → 0",
        ),
        ({"tokenizer": {"fingerprint": "f" * 16}}, "tokenizer chat_template: chatml → (not set)"),
    ],
)
def test_another_identity_is_refused_with_a_diff(folder: RunFolder, change: dict[str, Any], says: str) -> None:
    before = (folder.path / "run.json").read_bytes()
    with pytest.raises(UsageError) as refused:
        folder.resume(replace(SETTINGS, **change))
    assert f"\n  {says}" in str(refused.value)
    assert (folder.path / "run.json").read_bytes() == before


def test_the_diff_of_long_texts_shows_where_they_differ(folder: RunFolder) -> None:
    one = replace(SETTINGS, identity={"question": "a" * 500 + "b" + "c" * 500})
    other = replace(SETTINGS, identity={"question": "a" * 500 + "B" + "c" * 500})
    with RunFolder.create(folder.path.parent, model="m", settings=one) as made, pytest.raises(UsageError) as refused:
        made.resume(other)
    (line,) = [line for line in str(refused.value).splitlines() if "question" in line]
    assert "abc" in line and "aBc" in line and len(line) < 200


def test_texts_that_differ_in_white_space_only_are_still_told_apart(folder: RunFolder) -> None:
    identity = {**SETTINGS.identity, "needle": "a  b"}
    with (
        RunFolder.create(folder.path.parent, model="m", settings=replace(SETTINGS, identity=identity)) as made,
        pytest.raises(UsageError, match=r"needle: 'a  b' → 'a b'"),
    ):
        made.resume(replace(SETTINGS, identity={**identity, "needle": "a b"}))


def test_free_settings_may_change_and_the_change_is_recorded(folder: RunFolder) -> None:
    changed = replace(
        SETTINGS,
        identity={**SETTINGS.identity, "lengths": (1000.0, 4000), "unset": None},  # the same, written differently
        free={"concurrency": 64, "judge": "gpt"},
        corpora={"english": {"sha256": "c" * 64, "source": "/there"}},
        created="2030-01-01T00:00:00Z",
    )
    assert folder.resume(changed) == ["concurrency: 8 → 64", "judge: (not set) → gpt"]
    assert folder.settings.created == SETTINGS.created
    folder.close()
    with RunFolder.open(folder.path, for_writing=True) as run:
        assert run.settings.free == {"concurrency": 64, "judge": "gpt"}
        assert run.resume(changed) == []
    events = json.loads((folder.path / "run.json").read_text())["resumed"]
    assert [event["changes"] for event in events] == [["concurrency: 8 → 64", "judge: (not set) → gpt"], []]


# --- scores and files -------------------------------------------------------------------------------------------------


def a_score(value: float = 1.0) -> Score:
    return Score(outcome="correct", score=value, reason="it says so", span=(0, 4), scorer="rule")


def test_scores_belong_to_the_very_reply_that_they_were_given_for(folder: RunFolder) -> None:
    odd = replace(REPLY, text="x\ud800", times=replace(REPLY.times, total=2))
    folder.append(a_trial(0), REPLY)
    folder.append(a_trial(1), odd)
    folder.append(a_trial(2), REPLY)
    assert [score for *_, score in folder.scored("rule")] == [None] * 3
    folder.append_score(a_trial(0), REPLY, a_score(0.5))
    folder.append_score(a_trial(1), odd, a_score())
    folder.append_score(a_trial(0), REPLY, a_score(1.0))
    assert [score for *_, score in folder.scored("rule")] == [a_score(), a_score(), None]
    folder.append(a_trial(0), a_failure())
    assert [score for *_, score in folder.scored("rule")] == [None, a_score(), None]
    folder.close()
    with RunFolder.open(folder.path, for_writing=False) as run:
        assert [score for *_, score in run.scored("rule")] == [None, a_score(), None]
        assert [score for *_, score in run.scored("judge")] == [None] * 3


def test_a_torn_score_is_as_good_as_none(folder: RunFolder) -> None:
    folder.append(a_trial(0), REPLY)
    folder.append_score(a_trial(0), REPLY, a_score())
    folder.close()
    path = folder.path / "scores" / "rule.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    with RunFolder.open(folder.path, for_writing=True) as run:
        assert [score for *_, score in run.scored("rule")] == [None]
        run.append_score(a_trial(0), REPLY, a_score())
        assert [score for *_, score in run.scored("rule")] == [a_score()]


@pytest.mark.parametrize("name", ["", "../x", "/x", "a/../x", ".hidden", "a\\b", "a:b", "a\0", "a//b"])
def test_no_file_is_written_outside_the_folder(folder: RunFolder, name: str) -> None:
    with pytest.raises(UsageError, match="not a name"):
        folder.write_text(name, "x")
    with pytest.raises(UsageError, match="not a name"):
        folder.append_score(a_trial(), REPLY, replace(a_score(), scorer=name))


def test_files_are_written_whole_or_not_at_all(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder.write_text("report of 三国.json", "old ✓")
    assert path.read_text(encoding="utf-8") == "old ✓"
    assert folder.write_bytes("charts/a.png", b"\x89").read_bytes() == b"\x89"

    def full(handle: int) -> None:
        raise OSError(lock.errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left on device"):
        folder.write_text("report of 三国.json", "new")
    monkeypatch.undo()
    assert path.read_text(encoding="utf-8") == "old ✓"
    assert not list(folder.path.glob(".*.part"))


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_no_secret_reaches_any_file(tmp_path: Path) -> None:
    quoted = 'pa"ss\\word-é'
    secrets = [SECRET, quoted]
    told = replace(
        SETTINGS,
        identity={"model": "m", "options": {"extra_headers": {"X-Gate": "gate-value"}, "note": f"key {SECRET}"}},
        free={"api_key": SECRET, "judge": {"Authorization": f"Bearer {SECRET}", "api_url": f"https://u:{SECRET}@h/v1"}},
        endpoint={"url": f"https://h/v1?api_key={SECRET}", SECRET: [quoted]},
    )
    with RunFolder.create(tmp_path, model=f"m-{SECRET}", settings=told, secrets=secrets) as made:
        echoed = replace(REPLY, text=f"{SECRET} and {quoted}", reasoning=SECRET, finish=quoted)
        made.append(a_trial(0), echoed)
        made.append(
            a_trial(1), Reply(error=Failure(kind="auth", message=f"Incorrect API key provided: {SECRET}", status=401))
        )
        made.append_score(a_trial(0), echoed, replace(a_score(), reason=f"says {quoted}"))
        made.write_text("report.json", json.dumps({"a": [SECRET, quoted]}))
        made.write_text("report.html", f"<p>{SECRET} {quoted}")
        made.resume(told)
        assert [score is not None for *_, score in made.scored("rule")] == [True, False]
        with pytest.raises(UsageError) as refused:
            made.resume(replace(told, identity={"model": SECRET}))
        assert SECRET not in str(refused.value) and SECRET not in repr(made)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 6
    for path in files:
        text = path.read_text(encoding="utf-8")
        for part in (SECRET, quoted, json.dumps(quoted)[1:-1], "ss\\\\word", "gate-value"):
            assert part not in text and part not in str(path), path
    assert reopened(made.path)[0][1].text == "*** and ***"


def test_a_key_that_is_a_common_word_leaves_replies_alone(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path, model="m", settings=SETTINGS, secrets=["EMPTY", "none", ""]) as made:
        made.append(a_trial(), replace(REPLY, text="none"))
        assert [reply.text for _, reply in made.replies()] == ["none"]
