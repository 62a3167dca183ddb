"""A whole run against one loopback server: needlepoint and EvalScope 1.14.1 side by side, and our own overhead.

    python benchmarks/evaluation.py [runs|long|overhead ...] [--evalscope PYTHON --tokenizer DIR] [--corpus DIR]

The server answers with the needle and has no latency. Both tools ask the default 200 prompts with 8 in flight and score
by rule; needlepoint does so without and with pictures and page; `long` is 200 prompts to 1,000,000 tokens. The
overhead is our requests a second at 64 in flight against a bare httpx2 loop that sends the same bodies, on a server
that shows first how many it can take.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from prompts import made_up_corpus

EVALSCOPE = """
import sys
from evalscope import TaskConfig, run_task
url, corpus, longest, tokenizer, out = sys.argv[1:]
arguments = {"dataset_id": corpus, "local_path": corpus,
             "extra_params": {"tokenizer_path": tokenizer, "context_lengths_max": int(longest)}}
run_task(TaskConfig(model="m", api_url=url, api_key="x", eval_type="openai_api", datasets=["needle_haystack"],
                    eval_batch_size=8, judge={"strategy": "rule"}, work_dir=out,
                    dataset_args={"needle_haystack": arguments}))
"""
ANSWER = "The best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny day."
REPLY = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
    }
).encode()
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Both tools as pip installs them, modules compiled once: an editable install would compile its own at each start."""
MODELS = json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
ANSWER_BYTES, MODELS_BYTES = HEAD % len(REPLY) + REPLY, HEAD % len(MODELS) + MODELS


@dataclass(frozen=True, slots=True)
class Taken:
    """What one process took, from its start to its end."""

    wall_s: float
    cpu_s: float
    peak_mb: float

    @classmethod
    def by(cls, command: list[str]) -> Taken:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=COMPILED)
        assert process.stderr is not None
        says = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"failed: {command[0]}\n{says[-2000:].decode(errors='replace')}")
        return cls(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)

    @classmethod
    def middle(cls, some: list[Taken]) -> Taken:
        """Median times, and the highest peak."""
        return cls(
            statistics.median(one.wall_s for one in some),
            statistics.median(one.cpu_s for one in some),
            max(one.peak_mb for one in some),
        )


class Answering(asyncio.Protocol):
    """The leanest HTTP server that all clients here can talk to: counts a body's bytes, writes one answer."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.head = b""
        self.left = 0

    def data_received(self, data: bytes) -> None:
        if self.left:
            if len(data) < self.left:
                self.left -= len(data)
                return
            data, self.left = data[self.left :], 0
            self.transport.write(ANSWER_BYTES)
        data = self.head + data if self.head else data
        self.head = b""
        while data:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self.head = data
                return
            head, data = data[:end].lower(), data[end + 4 :]
            at = head.find(b"content-length:")
            size = int(head[at + 15 :].partition(b"\r\n")[0]) if at >= 0 else 0
            if len(data) < size:
                self.left = size - len(data)
                return
            data = data[size:]
            self.transport.write(MODELS_BYTES if head.startswith(b"get") else ANSWER_BYTES)


def serve(ready: Any) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        ready.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def capacity(port: int, body: bytes, n_requests: int = 40_000) -> float:
    """Requests a second that the server takes, asked by 64 bare sockets that read no meaning into its answers."""
    request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    with selectors.DefaultSelector() as waiting, contextlib.ExitStack() as stack:
        for _ in range(64):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting.register(client, selectors.EVENT_READ)
            client.sendall(request)
        answered, started = 0, time.perf_counter()
        while answered < n_requests:
            for key, _ in waiting.select():
                client = key.fileobj  # type: ignore[assignment]
                client.recv(1 << 16)
                client.sendall(request)
                answered += 1
        return answered / (time.perf_counter() - started)


async def bare(url: str, bodies: list[bytes]) -> float:
    import httpx2

    queue = iter(bodies)
    limits = httpx2.Limits(max_connections=64, max_keepalive_connections=64)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as client:

        async def worker() -> None:
            for body in queue:
                answer = await client.post(url, content=body, headers={"content-type": "application/json"})
                json.loads(answer.content)["choices"][0]["message"]["content"]

        started = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(64)))
        return len(bodies) / (time.perf_counter() - started)


class Ready:
    """A prompt that is there already, so that the loop alone is measured."""

    n_tokens = 1_000
    sha256 = "0" * 64
    max_tokens = None

    def __init__(self, text: str) -> None:
        self._messages = [{"role": "user", "content": text}]

    def messages(self) -> Any:
        return self._messages

    def text(self) -> str:
        return str(self._messages[0]["content"])

    def token_ids(self) -> Any:
        raise NotImplementedError


async def ours(url: str, texts: list[str]) -> float:
    from needlepoint.ask.models.openai import OpenAIModel
    from needlepoint.ask.runner import Job, Runner, RunnerSettings
    from needlepoint.connect import connect
    from needlepoint.types import Sampling

    model = OpenAIModel("m", api_url=url, stream=False, local=lambda: connect(None))
    await model.connect()
    replies: list[Any] = []
    runner = Runner(
        model,
        Sampling(max_tokens=64),
        RunnerSettings(concurrency=64),
        on_reply=lambda job, reply: replies.append(reply.error),
    )
    started = time.perf_counter()
    await runner.run(Job(None, Ready(text)) for text in texts)  # type: ignore[arg-type]
    speed = len(texts) / (time.perf_counter() - started)
    await model.close()
    assert replies == [None] * len(texts)
    return speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="runs, long, overhead; runs and overhead where none is named")
    parser.add_argument("--evalscope", help="Python with evalscope 1.14.1")
    parser.add_argument("--tokenizer", help="folder of the Qwen3 tokenizer, for EvalScope")
    parser.add_argument("--corpus", help="folder with the two texts")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    if options.evalscope and not options.tokenizer:
        parser.error("--evalscope needs --tokenizer, a folder with the Qwen3 tokenizer.json")
    ready = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(ready,), daemon=True)
    server.start()
    port = ready.get()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = options.corpus or str(made_up_corpus(folder))
        for part, longest, runs in (("runs", 32_000, options.runs), ("long", 1_000_000, 1)):
            if part in (options.parts or ("runs",)):
                whole_runs(options, f"http://127.0.0.1:{port}/v1", corpus, folder, longest, runs)
    if not options.parts or "overhead" in options.parts:
        overhead(port)
    server.terminate()


def whole_runs(options: argparse.Namespace, url: str, corpus: str, folder: Path, longest: int, runs: int) -> None:
    """Our run, the same with pictures and page, and EvalScope's, in turn, `runs` times."""
    arguments = {"needle_haystack": {"local_path": corpus, "extra_params": {"context_lengths_max": longest}}}
    ours = [sys.executable, "-m", "needlepoint.cli", "eval", "--model", "m", "--api-url", url, "--api-key", "x"]
    ours += ["--datasets", "needle_haystack", "--dataset-args", json.dumps(arguments), "--eval-batch-size", "8"]
    ours += ["--work-dir", str(folder / "ours")]
    commands = {"needlepoint, numbers only": [*ours, "--report", "none"], "needlepoint, with pictures and page": ours}
    if options.evalscope:
        commands["EvalScope 1.14.1"] = [options.evalscope, "-c", EVALSCOPE, url, corpus, str(longest)]
        commands["EvalScope 1.14.1"] += [options.tokenizer, str(folder / "theirs")]
    found: dict[str, list[Taken]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            found[name].append(Taken.by(command))
    print(f"whole run, 200 prompts to {longest:,} tokens, 8 in flight; median of {runs}")
    figures = {name: Taken.middle(some) for name, some in found.items()}
    for name, took in figures.items():
        line = f"  {name:<36} {took.wall_s:7.2f} s {took.cpu_s:7.2f} s of CPU {took.peak_mb:6.0f} MB"
        if options.evalscope and name.startswith("needlepoint"):
            theirs = figures["EvalScope 1.14.1"]
            line += f"   time 1/{theirs.wall_s / took.wall_s:.1f}, CPU 1/{theirs.cpu_s / took.cpu_s:.1f}"
            line += f", memory 1/{theirs.peak_mb / took.peak_mb:.1f}"
        print(line, flush=True)


def overhead(port: int) -> None:
    """Our requests a second at 64 in flight against those of a bare loop that sends the same bodies, in turn."""
    url = f"http://127.0.0.1:{port}/v1"
    texts = [f"{number} " + "word " * 900 for number in range(4_000)]
    bodies = [
        json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 64}).encode()
        for text in texts
    ]
    takes = capacity(port, bodies[0])
    print(f"the server takes {takes:,.0f} requests/s from 64 bare sockets")
    shares, loops, work = [], [], []
    for _ in range(7):
        before = time.process_time()
        loops.append(asyncio.run(bare(f"{url}/chat/completions", bodies)))
        between = time.process_time()
        own = asyncio.run(ours(url, texts))
        work.append((between - before) / (time.process_time() - between))
        shares.append(own / loops[-1])
        print(f"64 in flight: {own:,.0f} requests/s, a bare loop {loops[-1]:,.0f}: {shares[-1]:.2f}", flush=True)
    print(f"median share of the bare loop: {statistics.median(shares):.2f}, by CPU time {statistics.median(work):.2f};")
    print(f"the server is {takes / statistics.median(loops):.1f} times as fast as that loop")


if __name__ == "__main__":
    main()
