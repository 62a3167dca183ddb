"""A whole run against one loopback server: needlepoint and EvalScope 1.14.1 side by side, and our own overhead.

    python benchmarks/evaluation.py [--evalscope PYTHON --tokenizer DIR] [--corpus DIR] [--long]

The server answers with the needle and has no latency. Both tools ask the default 200 prompts with 8 in flight and score
by rule; `--long` adds 200 prompts to 1,000,000 tokens. The overhead is our requests a second at 64 in flight against a
bare httpx2 loop that sends the same bodies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from prompts import made_up_corpus, measure

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
MODELS = json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}).encode()


def serve(ready: Any) -> None:
    """The leanest HTTP server that both tools can talk to: reads a body, writes one answer."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = next((int(h[15:]) for h in head.lower().split(b"\r\n") if h.startswith(b"content-length:")), 0)
                while size > 0:
                    size -= len(await reader.read(min(size, 1 << 20)))
                body = MODELS if head.startswith(b"GET") else REPLY
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                    + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        ready.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


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
    parser.add_argument("--evalscope", help="Python with evalscope 1.14.1")
    parser.add_argument("--tokenizer", help="folder of the Qwen3 tokenizer, for EvalScope")
    parser.add_argument("--corpus", help="folder with the two texts")
    parser.add_argument("--long", action="store_true", help="also to 1,000,000 tokens")
    options = parser.parse_args()
    if options.evalscope and not options.tokenizer:
        parser.error("--evalscope needs --tokenizer, a folder with the Qwen3 tokenizer.json")
    ready = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(ready,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ready.get()}/v1"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = options.corpus or str(made_up_corpus(folder))
        for longest in (32_000, 1_000_000) if options.long else (32_000,):
            runs = 3 if longest == 32_000 else 1
            arguments = {"needle_haystack": {"local_path": corpus, "extra_params": {"context_lengths_max": longest}}}
            command = [sys.executable, "-m", "needlepoint.cli", "eval", "--model", "m", "--api-url", url]
            command += ["--api-key", "x", "--datasets", "needle_haystack", "--dataset-args", json.dumps(arguments)]
            command += ["--eval-batch-size", "8", "--work-dir", str(folder / "ours")]
            measured = [measure(command) for _ in range(runs)]
            wall, peak = statistics.median(w for w, _ in measured), max(p for _, p in measured)
            line = f"whole run to {longest:>9,}: needlepoint {wall:6.2f} s {peak:5.0f} MB"
            if options.evalscope:
                theirs = [options.evalscope, "-c", EVALSCOPE, url, corpus, str(longest), options.tokenizer]
                other = [measure([*theirs, str(folder / "theirs")]) for _ in range(runs)]
                their_wall, their_peak = statistics.median(w for w, _ in other), max(p for _, p in other)
                line += f" | EvalScope {their_wall:6.2f} s {their_peak:5.0f} MB"
                line += f" | time 1/{their_wall / wall:.1f}, memory 1/{their_peak / peak:.1f}"
            print(line, flush=True)
    texts = [f"{number} " + "word " * 900 for number in range(6_000)]
    bodies = [
        json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 64}).encode()
        for text in texts
    ]
    shares = []
    for _ in range(3):
        loop = asyncio.run(bare(f"{url}/chat/completions", bodies))
        own = asyncio.run(ours(url, texts))
        shares.append(own / loop)
        print(f"64 in flight: {own:,.0f} requests/s, a bare loop {loop:,.0f}: {own / loop:.2f}", flush=True)
    print(f"median share of the bare loop: {statistics.median(shares):.2f}")


if __name__ == "__main__":
    main()
