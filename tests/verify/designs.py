"""Designs of the stories, with as much in them as the written format asks for."""

from __future__ import annotations

from primitives import Body, sha256


def make_task(name: str, *, row: bool = False) -> Body:
    kind = {"format": "question", "path": "units.jsonl"} if row else {"format": "harbor", "path": f"tasks/{name}"}
    return {"name": name, "sha256": sha256(name.encode()), **kind}


def make_model(name: str, prices: Body | None = None) -> Body:
    """A model; it costs nothing unless there are `prices`: dollars for a million tokens, by bucket."""
    rows = prices or {"input": "0.000000000000", "output": "0.000000000000"}
    price = [{"bucket": bucket, "above_inputs": 0, "usd_per_million": usd} for bucket, usd in rows.items()]
    return {
        "name": name,
        "provider": "openai",
        "model": name,
        "api": "chat",
        "base_url": None,
        "effort": None,
        "max_output_tokens": 1000,
        "request_timeout_sec": 60,
        "api_key_env": None,
        "rpm": None,
        "tpm": None,
        "price": {"source": "here", "rows": price},
    }


def make_design(tasks: int = 2, models: int = 0, arms: int = 2, epochs: int = 2, replacements: int = 1) -> Body:
    return {
        "format": 1,
        "study": {"name": "story"},
        "stage": {"name": "main", "type": "standard", "epochs": epochs, "replacements": replacements},
        "draw": {"seed": 8},
        "tasks": [make_task(f"task-{i:06d}") for i in range(tasks)],
        "models": [make_model(f"model-{i}") for i in range(models)],
        "agent": {"name": "oracle", "settings": {}, "timeout_sec": 60},
        "sandbox": {"kind": "namespace", "network": "none"},
        "arms": [{"name": f"arm-{i}"} for i in range(arms)],
        "grading": {"solved": "reward >= 1.0"},
    }
