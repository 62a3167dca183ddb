"""Small published results in the shapes of other tools, made here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SEED = "\n    The best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny day.\n    "
PROMPT = "Please read.\n\n<text>\nOne. {needle} Two.\n</text>\n\n<question>\n{question}\n</question>\n\nBe short."
QUESTION = "What is the best thing to do in San Francisco?"


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path


def answer(length: int = 1000, depth: float = 50.0, score: Any = 10, version: int = 1, **more: Any) -> dict[str, Any]:
    """One of gkamradt's answers of 2023."""
    return {
        "model": "model-x",
        "context_length": length,
        "depth_percent": depth,
        "version": version,
        "needle": SEED,
        "model_response": "Eat a sandwich and sit in Dolores Park." if score == 10 else "It does not say.",
        "score": score,
        **more,
    }


def niah_row(length: int = 1000, depth: float = 50.0, value: float | None = 1.0, **more: Any) -> dict[str, Any]:
    """One row of needlehaystack 2."""
    return {
        "schema_version": 2,
        "run_name": "first",
        "model_id": "model-y",
        "model_request_name": "model-y-2026",
        "task_type": "uuid",
        "context_length": length,
        "target_depth_percent": depth,
        "recipe": {
            "haystack": {"type": "files", "path": "/home/someone/Essays"},
            "inserter": "single_depth",
            "needle_placements": [
                {"text": "The id is 7f3a.", "insertion_token_index": 480, "actual_depth_percent": depth - 1.5}
            ],
            "final_context_token_count": length + 12,
        },
        "needle_metadata": {},
        "expected_answer": "7f3a",
        "prompt_question": "What is the id?",
        "response": "7f3a",
        "score": None if value is None else {"value": value, "details": {}},
        "usage": {"input_tokens": length + 30, "output_tokens": 9},
        "cost_usd": 0.25,
        "duration_seconds": 1.5,
        "status": "ok",
        "error": None,
        "timestamp_utc": "2026-06-01T00:00:00+00:00",
        "seed": None,
        **more,
    }


def messages(needle: str = SEED.strip(), reply: str | None = "A sandwich.") -> list[dict[str, Any]]:
    prompt = PROMPT.format(needle=needle, question=QUESTION)
    found = [
        {"id": "aaaa0000", "role": "system", "content": "You answer."},
        {"id": "aaaa0001", "role": "user", "content": prompt},
    ]
    return found if reply is None else [*found, {"id": "aaaa0002", "role": "assistant", "content": reply}]


def prediction(
    index: int, length: int = 1000, depth: int = 50, reply: Any = "A sandwich.", stop: str = "stop", **more: Any
) -> dict[str, Any]:
    """One line of EvalScope's predictions."""
    usage = {"input_tokens": 0 if stop == "model_length" else length - 40, "output_tokens": 4, "reasoning_tokens": None}
    return {
        "index": index,
        "model": "maker/model-z",
        "model_output": {
            "model": "maker/model-z",
            "choices": [{"message": {"role": "assistant", "content": reply}, "stop_reason": stop}],
            "usage": usage,
            "time": 0.5,
            "error": None,
        },
        "messages": messages(needle=f"{SEED.strip()} At {length} and {depth}."),
        "metadata": {"context": "One. Two.", "context_length": length, "depth_percent": depth},
        **more,
    }


def review(
    index: int, acc: float | None = 1.0, length: int = 1000, depth: int = 50, judged: bool = False, **more: Any
) -> dict[str, Any]:
    """One line of EvalScope's reviews."""
    judge = {"status": "success" if acc is not None else "failed", "judge_models": ["j"], "error": None}
    if acc is None:
        judge["error"] = "no verdict"
    score = {
        "value": {} if acc is None else {"acc": acc},
        "status": judge["status"],
        "judge_summary": judge if judged else None,
        "prediction": "A sandwich.",
        "main_score_name": "acc",
    }
    return {
        "index": index,
        "target": [SEED.strip()],
        "messages": messages(needle=f"{SEED.strip()} At {length} and {depth}."),
        "sample_score": {
            "score": score,
            "sample_id": index,
            "group_id": index,
            "generation_index": 0,
            "sample_metadata": {"context": "One. Two.", "context_length": length, "depth_percent": depth},
        },
        **more,
    }


def report(cells: dict[tuple[int, int], float], *, old: bool = False, judged: bool = False) -> dict[str, Any]:
    """One of EvalScope's reports; `old` has the cells in the metrics' names."""

    def metric(length: int | None, depth: int | None, score: float) -> dict[str, Any]:
        place = {} if length is None else {"context_length": length, "depth_percent": depth}
        subsets = [
            {"name": "english", "score": score, "num": 1, "is_aggregate": False},
            {"name": "all", "score": score, "num": 1, "is_aggregate": True},
        ]
        head: dict[str, Any] = (
            {"name": f"Context#{length} Depth#{depth}" if place else "acc"}
            if old
            else {"identity": {"name": "accuracy", "aggregation": "mean", "dimensions": place or {"scope": "overall"}}}
        )
        return {**head, "num": 1, "score": score, "categories": [{"name": ["default"], "subsets": subsets}]}

    metrics = [metric(None, None, 0.5), *(metric(length, depth, score) for (length, depth), score in cells.items())]
    return {
        "name": "model-z@needle_haystack",
        "dataset_name": "needle_haystack",
        "model_name": "model-z",
        "metrics": metrics,
        **({"judge_summary": {"status": "success"}} if judged else {}),
    }


def evalscope_run(folder: Path, rows: int = 4, *, judged: bool = False) -> Path:
    """A whole run folder of one subset: lengths 1k and 2k, depths 0 and 100, the last cell missed."""
    cells = [(1000, 0), (1000, 100), (2000, 0), (2000, 100)][:rows]
    low = 0.1 if judged else 0
    predictions = [prediction(i, *cell) for i, cell in enumerate(cells)]
    reviews = [review(i, low if i == 3 else 1, *cell, judged) for i, cell in enumerate(cells)]
    write_lines(folder / "predictions" / "model-z" / "needle_haystack_english.jsonl", reversed(predictions))
    write_lines(folder / "reviews" / "model-z" / "needle_haystack_english.jsonl", reviews)
    write_json(folder / "reports" / "model-z" / "needle_haystack.json", report(dict.fromkeys(cells, 1.0)))
    (folder / "reports" / "model-z" / "needle_haystack_heatmap_english.png").write_bytes(b"\x89PNG")
    write_lines(folder / "predictions" / "model-z" / "gsm8k_main.jsonl", [{"index": 0}])
    return folder
