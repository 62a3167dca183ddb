"""The engine against the model's own forward pass: the same logits, and not a token computed twice."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace
from typing import Any

import pytest

from needlepoint.errors import UsageError

from . import tiny
from .tiny import Answer, Choice, Engine, Request, StoppedError, kernels, proof, torch, trie, trunk, weights


def asked(engine: Engine, prompts: list[list[int]], **more: object) -> list[Answer]:
    requests = [Request(ids=array("I", prompt), **more) for prompt in prompts]  # type: ignore[arg-type]
    answers = dict(engine.answer(requests))
    return [answers[number] for number in range(len(prompts))]


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_every_shared_token_is_computed_once_and_logits_are_those_of_a_full_prefill(kind: str) -> None:
    model, prompts = tiny.model_of(kind), tiny.family()
    engine = tiny.engine_of(model)
    answers = asked(engine, prompts)
    bound = trie.size(trie.build(prompts))
    assert bound < 0.25 * sum(map(len, prompts))
    assert engine.forwarded == sum(answer.prefilled for answer in answers) == bound
    for prompt, answer in zip(prompts, answers, strict=True):
        wanted = tiny.logits_of(model, prompt)
        assert float(wanted.std()) > 0.3
        assert float((answer.first_logits - wanted).abs().max()) <= 1e-5


@pytest.mark.parametrize("kind", ["llama", "gemma3", "qwen3-next"])
@pytest.mark.parametrize(("tail", "most_rows", "chunk"), [(0, 1, 7), (1, 2, 256), (256, 3, 1)])
def test_how_the_work_is_cut_changes_neither_tokens_nor_logits(
    kind: str, tail: int, most_rows: int, chunk: int
) -> None:
    model, prompts = tiny.model_of(kind), [prompt[:90] + prompt[-6:] for prompt in tiny.family()[::2]]
    engine = tiny.engine_of(model, tail=tail, most_rows=most_rows, chunk=chunk)
    answers = asked(engine, prompts)
    assert engine.forwarded == trie.size(trie.build(prompts))
    for prompt, answer in zip(prompts, answers, strict=True):
        assert float((answer.first_logits - tiny.logits_of(model, prompt)).abs().max()) <= 1e-5


@pytest.mark.parametrize("kind", ["llama", "gemma3", "qwen3-next"])
def test_answers_side_by_side_are_those_of_one_prompt_alone(kind: str) -> None:
    model, prompts = tiny.model_of(kind), tiny.family()
    some = [prompts[0], *prompts[7:12], prompts[-4]]
    alone = [asked(tiny.engine_of(model, tail=0), [prompt], max_tokens=6)[0].ids for prompt in some]
    assert [answer.ids for answer in asked(tiny.engine_of(model), some, max_tokens=6)] == alone
    assert len({tuple(ids) for ids in alone}) > 3
    model.set_attn_implementation("eager")
    stock = model.generate(torch.tensor([some[0]]), max_new_tokens=6, do_sample=False, pad_token_id=0)
    assert alone[0] == stock[0, len(some[0]) :].tolist()


@pytest.mark.parametrize("kind", ["llama", "gemma3", "qwen3-next"])
def test_continuations_get_the_log_probability_of_each_of_their_tokens(kind: str) -> None:
    model = tiny.model_of(kind)
    prompts = tiny.family()[7:9]
    continuations = ((3, 4, 5), (6,), (7, 8, 9, 10))
    answers = asked(tiny.engine_of(model), prompts, max_tokens=2, continuations=continuations)
    for prompt, answer in zip(prompts, answers, strict=True):
        for one, scores in zip(continuations, answer.scores, strict=True):
            wanted = [
                float(torch.log_softmax(tiny.logits_of(model, [*prompt, *one[:at]]), -1)[token])
                for at, token in enumerate(one)
            ]
            assert scores == pytest.approx(wanted, abs=2e-5)
        assert len(answer.ids) == 2


def test_the_next_wave_goes_on_where_the_last_one_left_the_trunk() -> None:
    model, prompts = tiny.model_of("llama"), tiny.family()[:6]
    engine = tiny.engine_of(model)
    asked(engine, prompts)
    before = engine.forwarded
    again = asked(engine, [[*prompts[-1][:-3], 11, 12]])
    assert engine.forwarded - before == again[0].prefilled == 2
    assert float((again[0].first_logits - tiny.logits_of(model, [*prompts[-1][:-3], 11, 12])).abs().max()) <= 1e-5
    whole = asked(engine, [prompts[-1][:300]])  # all of it is there, but for its logits
    assert whole[0].prefilled == 1
    assert float((whole[0].first_logits - tiny.logits_of(model, prompts[-1][:300])).abs().max()) <= 1e-5


@pytest.mark.parametrize("kind", ["gemma3", "qwen3-next"])
def test_layers_that_cannot_go_back_are_right_in_the_next_wave_too(kind: str) -> None:
    model, prompts = tiny.model_of(kind), tiny.family()[:3]
    engine = tiny.engine_of(model)
    for _ in range(2):
        answers = asked(engine, prompts)
        for prompt, answer in zip(prompts, answers, strict=True):
            assert float((answer.first_logits - tiny.logits_of(model, prompt)).abs().max()) <= 1e-5


def test_what_is_cut_off_costs_nothing_and_leaves_the_block_in_place() -> None:
    engine = tiny.engine_of(tiny.model_of("llama"), tail=0)
    prompts = tiny.family()[:12]
    asked(engine, prompts)
    block = engine.trunk.layers[0].keys.data_ptr()
    engine.trunk.truncate(5)
    assert (engine.trunk.length, engine.trunk.layers[0].length) == (5, 5)
    asked(engine, prompts)
    assert engine.trunk.layers[0].keys.data_ptr() == block
    with pytest.raises(RuntimeError, match="block for"):
        engine.trunk.layers[0].update(torch.zeros(1, 2, 9_999, 8), torch.zeros(1, 2, 9_999, 8))


def test_a_model_that_cannot_go_back_refuses_to_be_cut_in_the_middle() -> None:
    engine = tiny.engine_of(tiny.model_of("gemma3"), tail=0)
    asked(engine, [tiny.family()[0]])
    with pytest.raises(RuntimeError, match="snapshot"):
        engine.trunk.truncate(5)


def test_the_engine_stops_between_two_chunks_when_it_is_told() -> None:
    engine = tiny.engine_of(tiny.model_of("llama"))
    engine.stop.set()
    with pytest.raises(StoppedError):
        asked(engine, tiny.family())
    engine.stop.clear()
    engine.reset()
    assert len(asked(engine, tiny.family()[:2], max_tokens=1)) == 2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(4, 2, 8), (3, 1, 20), (6, 6, 64)])
def test_the_chosen_kernel_agrees_with_plain_arithmetic_and_joins(
    dtype: str, heads: int, kv_heads: int, head_dim: int
) -> None:
    kind = getattr(torch, dtype)
    chosen = kernels.choose(torch.device("cpu"), kind, heads=heads, kv_heads=kv_heads, head_dim=head_dim)
    assert chosen.name != "plain"
    torch.manual_seed(0)
    query = torch.randn(1, heads, 9, head_dim, dtype=kind)
    key, value = (torch.randn(1, kv_heads, 70, head_dim, dtype=kind) for _ in range(2))
    wanted, total = kernels.plain(query, key, value, 0.3, True)
    found, found_total = chosen.causal(query, key, value, 0.3)
    assert found_total is not None
    off = 1e-5 if dtype == "float32" else 3e-2
    assert float((found - wanted).abs().max()) <= off
    assert float((found_total - total).abs().max()) <= off
    window, _ = kernels.windowed(query, key, value, 0.3, 12)
    last = kernels.plain(query[:, :, -1:], key[:, :, -12:], value[:, :, -12:], 0.3)[0]
    assert float((window[:, :, -1:] - last).abs().max()) <= off


def test_a_kernel_that_is_off_or_fails_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*arguments: object) -> object:
        out, total = kernels.plain(*arguments)  # type: ignore[arg-type]
        return out * 1.01, total

    def nothing(*arguments: object) -> object:
        out, total = kernels.plain(*arguments)  # type: ignore[arg-type]
        return out * float("nan"), total

    def broken(*arguments: object) -> object:
        raise RuntimeError("no kernel")

    for partial in (wrong, nothing, broken):
        monkeypatch.setattr(kernels, "_OF_DEVICE", {"cpu": (("bad", partial),)})
        chosen = kernels.choose(torch.device("cpu"), torch.float32, heads=4, kv_heads=2, head_dim=8)
        assert chosen.name == "plain"


def test_pieces_are_few_lengths_that_make_up_all_of_it() -> None:
    lengths = set()
    for n in range(0, 130 * 16, 16):
        found = kernels.pieces(n, 16)
        assert [at for piece in found for at in piece][1:-1:2] == [end for _, end in found[:-1]]
        assert (not found and n == 0) or (found[0][0] == 0 and found[-1][1] == n)
        lengths |= {end - begin for begin, end in found}
    assert lengths == {16 << k for k in range(8)}


@pytest.mark.parametrize("begin", [0, 1, 15, 16, 17, 100])
@pytest.mark.parametrize("most", [8, 16, 40, 64])
def test_chunks_are_whole_blocks_wherever_they_can_be(begin: int, most: int) -> None:
    for end in range(begin, begin + 150):
        for large in (None, kernels.plain):
            chosen = kernels.Kernels("", kernels.plain, large=large, block=16)
            found = list(chosen.chunks(begin, end, most))
            assert [place for one in found for place in range(*one)] == list(range(begin, end))
            assert all(0 < last - first <= most for first, last in found)
            if large is None:
                assert len(found) == -(-(end - begin) // most)
            elif most >= 16:
                odd = [one for one in found if one[0] % 16 or (one[1] - one[0]) % 16]
                assert len(odd) <= 2 and sum(last - first for first, last in odd) < 32


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_blocks_by_another_kernel_give_the_same_logits(kind: str) -> None:
    blocks: list[int] = []

    def large(query: Any, key: Any, value: Any, scale: float, causal: bool) -> Any:
        assert not query.shape[2] % 16 and not key.shape[2] % 16
        blocks.append(key.shape[2])
        return kernels.plain(query, key, value, scale, causal)

    model = tiny.model_of(kind)
    engine = tiny.engine_of(model)
    engine.kernels = engine.trunk.kernels = replace(engine.kernels, large=large, block=16)
    prompts = tiny.family()
    answers = asked(engine, prompts, max_tokens=1)
    assert engine.forwarded == trie.size(trie.build(prompts))
    for prompt, answer in zip(prompts, answers, strict=True):
        assert answer.first_logits is not None
        assert float((answer.first_logits - tiny.logits_of(model, prompt)).abs().max()) <= 1e-5
    assert (max(blocks, default=0) > 64) is (kind != "gemma2"), "soft caps are for plain arithmetic"


@pytest.mark.parametrize(
    ("fault", "speed", "taken"), [("", 1, True), ("", 3, False), ("off", 1, False), ("nan", 1, False), ("no", 1, False)]
)
def test_cudnn_is_taken_for_blocks_where_it_is_right_and_faster(
    monkeypatch: pytest.MonkeyPatch, fault: str, speed: int, taken: bool
) -> None:
    def cudnn(*arguments: Any) -> Any:
        if fault == "no":
            raise RuntimeError("No available kernel")
        out, total = kernels.plain(*arguments)
        return out + {"off": 0.1, "nan": float("nan")}.get(fault, 0.0), total

    monkeypatch.setattr(kernels, "_cudnn", cudnn)
    monkeypatch.setattr(kernels, "BLOCK", 16)
    monkeypatch.setattr(kernels, "_seconds", lambda chosen, *_: speed if chosen.large else 2)
    flash = kernels.Kernels("flash", kernels.plain)
    found = kernels._with_large(flash, torch.device("cpu"), torch.float32, 4, 2, 8)
    assert (found.large is not None) is taken and ("cuDNN" in found.name) is taken


@pytest.mark.parametrize("kind", tiny.KINDS)
def test_the_proof_passes_for_models_that_are_run_right(kind: str) -> None:
    model = tiny.model_of(kind)
    engine = tiny.engine_of(model)
    assert proof.prove(model, engine.trunk.kinds, engine.kernels) > 0.9999


def test_the_proof_fails_where_a_layer_is_taken_for_another_kind() -> None:
    model = tiny.model_of("gemma3")
    engine = tiny.engine_of(model)
    wrong = [trunk.Layer(kind="full")] * 4  # no window
    with pytest.raises(UsageError, match="gives other logits"):
        proof.prove(model, wrong, engine.kernels)


def test_layers_that_nobody_knows_are_refused_in_words() -> None:
    config = tiny.config_of("llama")
    config.layer_types = ["chunked_attention"] * 4
    with pytest.raises(UsageError, match="'chunked_attention', which the transformers engine can't run exactly"):
        weights.shape_of(config)


# --- tries and choices ------------------------------------------------------------------------------------------------


def test_a_trie_has_as_many_tokens_as_there_are_distinct_beginnings() -> None:
    rng = random.Random(3)
    for _ in range(50):
        prompts = [[rng.randrange(3) for _ in range(rng.randrange(1, 12))] for _ in range(rng.randrange(1, 20))]
        distinct = {tuple(prompt[:end]) for prompt in prompts for end in range(1, len(prompt) + 1)}
        root = trie.build(prompts)
        assert trie.size(root) == len(distinct)
        assert sorted(number for node in root.walk() for number in node.prompts) == list(range(len(prompts)))
        assert trie.reaches(root)[id(root)] == max(map(len, prompts))


def test_draws_follow_the_logits_within_top_p_and_top_k_and_repeat_with_their_seed() -> None:
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))
    draws = [Choice(temperature=1.0).draw(logits, random.Random(n)) for n in range(2_000)]
    assert draws == [Choice(temperature=1.0).draw(logits, random.Random(n)) for n in range(2_000)]
    assert [draws.count(token) / 2_000 for token in range(4)] == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)
    assert {Choice(temperature=1.0, top_p=0.7).draw(logits, random.Random(n)) for n in range(300)} == {0, 1}
    assert {Choice(temperature=1.0, top_k=3).draw(logits, random.Random(n)) for n in range(300)} == {0, 1, 2}
    assert Choice().draw(logits, random.Random(0)) == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"temprature": 1}, "does not know the generation setting 'temprature'"),
        ({"temperature": "hot"}, "temperature must be a number from 0 to 100"),
        ({"top_p": 2}, "top_p must be a number from 0 to 1"),
        ({"n": 2}, "n must be 1"),
    ],
)
def test_generation_settings_that_it_does_not_do_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Choice.of(options)
