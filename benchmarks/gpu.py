"""The transformers engine on a GPU: grids and rows by reuse against full prefills, a million tokens, and the truth.

    python benchmarks/gpu.py speed  --part classic|naive|woven|row [--to 131072]
    python benchmarks/gpu.py noise
    python benchmarks/gpu.py million
    python benchmarks/gpu.py truth --gguf SmolLM2-135M-Instruct.Q4_1.gguf
    python benchmarks/gpu.py all --device cpu --small            # every part, scaled down, on any machine

Each part is one process that is made to end within ten minutes on one H200, and prints one line of JSON. It needs
PyTorch and transformers, and `src` beside it; nothing is fetched. Speed is that of random weights in the shape of
Qwen3-0.6B: what they say doesn't matter for it. Tokens are random ids, put together as the layouts do it: a haystack
that all share, needles of 18 tokens, questions of 24.

The baseline is one full prefill for each cell with the best attention that PyTorch has there: one call over the whole
prompt, without a cache, causal, by whichever of its fused kernels (flash, cuDNN) was the faster one on a sixth of the
longest prompt; `baseline` says which. `kernels` are those that the engine itself chose. A grid's baseline is the time
of one prefill of each length (the better of two), times its depths: where the needle is makes no difference to it, and
100 of them would take minutes. `--every` measures each one.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from array import array
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AttentionInterface, AutoModelForCausalLM, Qwen3Config

from needlepoint.ask.models.neural import attention, kernels, memory, trie, weights
from needlepoint.ask.models.neural.engine import Answer, Engine, Request

NEEDLE_TOKENS, QUESTION_TOKENS = 18, 24
BASELINE = "one-call"
BARS = {"woven": 25.0, "classic": 1.45, "row": 9.0}


def shape(*, small: bool) -> Qwen3Config:
    """That of Qwen3-0.6B, or one that a CPU does in seconds."""
    return Qwen3Config(
        vocab_size=4_096 if small else 151_936,
        hidden_size=128 if small else 1_024,
        intermediate_size=256 if small else 3_072,
        num_hidden_layers=4 if small else 28,
        num_attention_heads=8 if small else 16,
        num_key_value_heads=4 if small else 8,
        head_dim=32 if small else 128,
        max_position_embeddings=1 << 21,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )


def baseline(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: None, *, scaling: float, **_: Any
) -> tuple[torch.Tensor, None]:
    """Causal attention over one whole prompt. The only fused kernel for fp32 takes no groups of heads."""
    if query.dtype == torch.float32:
        key, value = (one.repeat_interleave(query.shape[1] // key.shape[1], 1) for one in (key, value))
    out = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=True, scale=scaling, enable_gqa=query.shape[1] != key.shape[1]
    )
    return out.transpose(1, 2).contiguous(), None


class Bench:
    """One model with random weights, and the clock of its device."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.small = args.small
        self.device = torch.device(args.device)
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[args.dtype]
        torch.manual_seed(0)
        config = shape(small=args.small)
        with torch.device(self.device):
            model = AutoModelForCausalLM.from_config(config, dtype=self.dtype).eval()
        self.model = weights.ready(model)
        self.shape = weights.shape_of(config)
        self.kernels = kernels.choose(
            self.device,
            self.dtype,
            heads=self.shape.heads,
            kv_heads=self.shape.kv_heads,
            head_dim=self.shape.head_dim,
        )
        self.vocabulary = config.vocab_size
        self.chunk = 1_024 if self.device.type == "cpu" else 8_192
        self.backend = SDPBackend.FLASH_ATTENTION
        AttentionInterface.register(BASELINE, baseline)

    def facts(self) -> dict[str, str]:
        return {"kernels": self.kernels.name, "baseline": self.backend.name}

    def find_baseline(self, n_tokens: int) -> None:
        """Take for full prefills the fused kernel that does one of `n_tokens` fastest."""
        if self.device.type != "cuda":
            return
        ids = array("I", (random.Random(2).randrange(self.vocabulary) for _ in range(n_tokens)))
        seconds: dict[SDPBackend, float] = {}
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            self.backend = backend
            try:
                seconds[backend] = min(self.full(ids)[0] for _ in range(3))
            except RuntimeError:  # not on this machine
                continue
        self.backend = min(seconds, key=seconds.__getitem__)

    def engine(self, capacity: int, **settings: Any) -> Engine:
        return Engine(self.model, self.shape.layers, self.kernels, capacity=capacity, chunk=self.chunk, **settings)

    def sync(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def timed(self, work: Any) -> tuple[float, Any]:
        self.sync()
        began = time.perf_counter()
        found = work()
        self.sync()
        return time.perf_counter() - began, found

    @torch.inference_mode()
    def full(self, ids: array[int]) -> tuple[float, torch.Tensor]:
        """One full prefill without any cache by PyTorch's own SDPA: seconds and last logits."""
        exact = self.device.type == "cuda" and self.model.dtype == torch.float32
        backend = SDPBackend.EFFICIENT_ATTENTION if exact else self.backend
        self.model.set_attn_implementation(BASELINE)
        try:
            tokens = torch.tensor([ids.tolist()], device=self.device)

            def once() -> torch.Tensor:
                with sdpa_kernel(backend):
                    found: torch.Tensor = self.model(input_ids=tokens, use_cache=False, logits_to_keep=1).logits[0, -1]
                return found

            return self.timed(once)
        finally:
            self.model.set_attn_implementation(attention.NAME)

    def peak(self) -> int | None:
        return torch.cuda.max_memory_allocated() if self.device.type == "cuda" else None


def lengths_to(longest: int, count: int) -> list[int]:
    return [longest * (at + 1) // count for at in range(count)]


def grids(longest: int, n_lengths: int, n_depths: int, vocabulary: int) -> tuple[list[array[int]], list[array[int]]]:
    """(classic, woven) prompts of one grid over one haystack, each of exactly its length, in ascending order."""
    rng = random.Random(0)

    def some(n: int) -> array[int]:
        return array("I", (rng.randrange(vocabulary) for _ in range(n)))

    hay, tail, needle = some(longest), some(QUESTION_TOKENS), some(NEEDLE_TOKENS)
    lengths = lengths_to(longest, n_lengths)
    classic = []
    for length in lengths:
        room = length - NEEDLE_TOKENS - QUESTION_TOKENS
        for depth in range(n_depths):
            at = room * depth // max(1, n_depths - 1)
            classic.append((at, length, hay[:at] + needle + hay[at:room] + tail))
    stream, questions = hay[:], []
    for _ in range(n_lengths * n_depths):
        questions.append(tail[:12] + some(QUESTION_TOKENS - 12))
    woven = [
        stream[: length - QUESTION_TOKENS] + questions[at * n_depths + depth]
        for at, length in enumerate(lengths)
        for depth in range(n_depths)
    ]
    return [prompt for _, _, prompt in sorted(classic, key=lambda one: one[:2])], woven


def shared(bench: Bench, prompts: list[array[int]]) -> dict[str, Any]:
    """Prefill some prompts as one trie."""
    bound = trie.size(trie.build(prompts))
    engine = bench.engine(max(map(len, prompts)), keep_logits=False)
    seconds, answers = bench.timed(lambda: dict(engine.answer([Request(ids=ids) for ids in prompts])))
    assert len(answers) == len(prompts)
    return {
        "prompts": len(prompts),
        "naive_tokens": sum(map(len, prompts)),
        "bound_tokens": bound,
        "forwarded_tokens": engine.forwarded,
        "at_bound": engine.forwarded == bound,
        "seconds": seconds,
        "peak_bytes": bench.peak(),
    }


def warm(bench: Bench, longest: int) -> None:
    prompts, woven = grids(512, 2, 2, bench.vocabulary)
    shared(bench, prompts + woven)
    bench.full(prompts[0])
    bench.find_baseline(longest // 6)
    if bench.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()


def naive(bench: Bench, prompts: list[array[int]], *, every: bool) -> float:
    """Seconds of one full prefill for each prompt."""
    if every:
        return sum(bench.full(ids)[0] for ids in prompts)
    by_length: dict[int, list[array[int]]] = {}
    for ids in prompts:
        by_length.setdefault(len(ids), []).append(ids)
    return sum(min(bench.full(some[0])[0] for _ in range(2)) * len(some) for some in by_length.values())


def speed(args: argparse.Namespace) -> dict[str, Any]:
    """One part: a 10 × 10 grid `classic` or `woven`, or one `row` of 10 depths, against full prefills."""
    bench = Bench(args)
    longest = args.to or (2_048 if args.small else 131_072)
    count = 4 if args.small else 10
    classic, woven = grids(longest, 1 if args.part == "row" else count, count, bench.vocabulary)
    warm(bench, longest)
    prompts = classic if args.part == "classic" else woven
    found = shared(bench, prompts)
    whole = naive(bench, prompts, every=args.every)
    ratio = whole / found["seconds"]
    bar = None if args.small else BARS[args.part]
    return {"longest": longest, **bench.facts(), **found, "naive_seconds": whole, "faster": ratio, "bar": bar}


def noise(args: argparse.Namespace) -> dict[str, Any]:
    """How far logits are from a full prefill's in fp32: by reuse, and by a full prefill in the same dtype.

    The second is the noise of the dtype; reuse must not add to it. Greedy answers are compared token by token.
    """
    bench = Bench(args)
    longest = args.to or (1_024 if args.small else 32_768)
    classic, woven = grids(longest, 3, 3, bench.vocabulary)
    prompts = classic + woven
    warm(bench, longest)
    engine = bench.engine(longest, keep_logits=True)
    answers: dict[int, Answer] = dict(engine.answer([Request(ids=ids, max_tokens=1) for ids in prompts]))
    own = [bench.full(ids)[1].float().cpu() for ids in prompts]
    shared_logits = [answers[at].first_logits.float().cpu() for at in range(len(prompts))]  # type: ignore[union-attr]
    bench.model.float()
    exact = [bench.full(ids)[1].float().cpu() for ids in prompts]

    def off(found: list[torch.Tensor]) -> list[float]:
        return [float((one - two).abs().max() / two.std()) for one, two in zip(found, exact, strict=True)]

    def same(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> int:
        return sum(int(one.argmax()) == int(two.argmax()) for one, two in zip(found, wanted, strict=True))

    gaps = [float(one.topk(2).values.diff().abs() / one.std()) for one in exact]
    return {
        **bench.facts(),
        "prompts": len(prompts),
        "at_bound": engine.forwarded == trie.size(trie.build(prompts)),
        "off_by_reuse": {"median": statistics.median(off(shared_logits)), "worst": max(off(shared_logits))},
        "off_by_dtype": {"median": statistics.median(off(own)), "worst": max(off(own))},
        "greedy_reuse_as_full": same(shared_logits, own),
        "greedy_reuse_as_exact": same(shared_logits, exact),
        "greedy_full_as_exact": same(own, exact),
        "smallest_gap_of_first_and_second": min(gaps),
    }


def million(args: argparse.Namespace) -> dict[str, Any]:
    """A context of 1,000,000 tokens and ten questions: seconds, tokens, and the peak against the forecast."""
    bench = Bench(args)
    longest = args.to or (8_000 if args.small else 1_000_000)
    _, woven = grids(longest, 1, 10, bench.vocabulary)
    forecast = memory.forecast(
        bench.shape,
        parameters=sum(parameter.numel() for parameter in bench.model.parameters()),
        dtype=args.dtype,
        device=bench.device.type,
        context_tokens=longest,
        answer_tokens=8,
        free_bytes=None,
    )
    warm(bench, 512)
    engine = bench.engine(longest, most_rows=10)
    requests = [Request(ids=ids, max_tokens=8) for ids in woven]
    seconds, answers = bench.timed(lambda: dict(engine.answer(requests)))
    bound = trie.size(trie.build(woven))
    rows = forecast.rows // forecast.n_rows * 10
    return {
        **bench.facts(),
        "tokens": longest,
        "answers": len(answers),
        "forwarded_tokens": engine.forwarded,
        "at_bound": engine.forwarded == bound,
        "seconds": seconds,
        "peak_bytes": bench.peak(),
        "forecast_bytes": forecast.total - forecast.rows + rows,
    }


def truth(args: argparse.Namespace) -> dict[str, Any]:
    """SmolLM2's own weights: needles found, the same answers by reuse, without it, and woven or alone."""
    import asyncio

    from needlepoint.ask.models.transformers import TransformersModel
    from needlepoint.plan.grid import Grid
    from needlepoint.plan.task import Plan, Task
    from needlepoint.types import Corpus, Sampling

    words = [f"The {a} {b} {c} the {d}." for a, b, c, d in made_up_words(4_000)]
    text = " ".join(words)
    corpus = Corpus(name="made up", subset="english", language="en", licence="own", sha256="0" * 64, text=text)
    lengths = "400" if args.small else "1k:8k:4"
    grid = Grid.from_specs(lengths, "0,100" if args.small else "0:100:5")

    async def run() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for layout in ("classic", "woven"):
            model = TransformersModel(args.gguf, dtype=args.dtype, device=args.device)  # one that holds nothing yet
            endpoint = await model.connect()
            model.reserve(max(grid.lengths) + 24)
            prompts = list(Plan(Task(grid=grid, layout=layout), [corpus], endpoint))  # type: ignore[arg-type]
            for reuse in (True, False):
                sampling = Sampling(max_tokens=24, reuse=reuse)
                replies = [reply async for reply in model.ask(prompts, sampling)]
                right = sum(
                    any(answer in reply.text for answer in prompt.answers)
                    for prompt, reply in zip(prompts, replies, strict=True)
                )
                found[f"{layout}_{'reuse' if reuse else 'whole'}"] = {
                    "prompts": len(prompts),
                    "right": right,
                    "prefilled_tokens": sum(reply.prefilled_tokens or 0 for reply in replies),
                    "texts": [reply.text for reply in replies],
                }
            bound = trie.size(trie.build([prompt.token_ids() for prompt in prompts]))
            one, two = found[f"{layout}_reuse"], found[f"{layout}_whole"]
            one["at_bound"] = one["prefilled_tokens"] == bound
            one["as_whole"] = sum(map(str.__eq__, one.pop("texts"), two.pop("texts")))
            await model.close()
        return found

    return asyncio.run(run())


def made_up_words(n: int) -> list[tuple[str, str, str, str]]:
    rng = random.Random(1)
    nouns = "miller clerk ferry gardener kettle bridge ledger gate orchard letter lantern wagon".split()
    verbs = "carried repaired described measured painted forgot borrowed counted".split()
    kinds = "quiet old narrow copper wooden early late small".split()
    return [(rng.choice(kinds), rng.choice(nouns), rng.choice(verbs), rng.choice(nouns)) for _ in range(n)]


def facts(args: argparse.Namespace) -> dict[str, Any]:
    name = torch.cuda.get_device_name() if args.device.startswith("cuda") else "cpu"
    return {"device": name, "dtype": args.dtype, "torch": torch.__version__, "small": args.small}


PARTS = {"speed": speed, "noise": noise, "million": million, "truth": truth}


def main() -> None:
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*PARTS, "all"))
    parser.add_argument("--part", choices=tuple(BARS), default="woven")
    parser.add_argument("--to", type=int, help="longest context in tokens")
    parser.add_argument("--every", action="store_true", help="measure the full prefill of every single cell")
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--dtype", choices=("bf16", "fp16", "fp32"), default="bf16" if cuda else "fp32")
    parser.add_argument("--small", action="store_true", help="a model and lengths that a CPU does in seconds")
    parser.add_argument("--gguf", help="SmolLM2's file, for `truth`")
    args = parser.parse_args()
    if args.what == "all":
        runs = [["speed", "--part", part] for part in BARS] + [["noise"], ["million"]]
        runs += [["truth", "--gguf", args.gguf]] if args.gguf else []
        more = ["--device", args.device, "--dtype", args.dtype, *(["--small"] if args.small else [])]
        for run in runs:  # each in a process of its own, as on a machine that is lent for minutes
            subprocess.run([sys.executable, __file__, *run, *more], check=True)
        return
    if args.what == "truth" and not args.gguf:
        parser.error("truth needs --gguf FILE")
    began = time.perf_counter()
    found = PARTS[args.what](args)
    part = f" {args.part}" if args.what == "speed" else ""
    print(json.dumps({"what": args.what + part, **facts(args), **found, "wall_s": time.perf_counter() - began}))


if __name__ == "__main__":
    main()
