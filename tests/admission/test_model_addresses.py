"""Where a model is: a plain address, or a refusal that does not repeat what may hold a password."""

from __future__ import annotations

import pytest

from proctor.admission.models import resolve_models
from proctor.core.reasons import Reason
from proctor.study.schema.actors import Model

PRICE = {"input": "1", "output": "1", "per": "1M", "source": "made up"}


def table(base_url: str) -> Model:
    values = {"provider": "mine", "model": "m", "base_url": base_url, "max_output_tokens": 10, "price": PRICE}
    return Model.model_validate(values)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1/", "https://models.example", "http://[::1]:80/a%20b"])
def test_addresses_are_kept_without_their_last_slash(url: str) -> None:
    models, refusals = resolve_models({"m": table(url)}, None)
    assert (refusals, models["m"].base_url, models["m"].api_key_env) == ([], url.rstrip("/"), None)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:hunter2@h/v1",
        "http://h/v1?key=hunter2",
        "http://h/v1#hunter2",
        "file:///hunter2",
        "//hunter2/v1",
        "http://",
        "http://[::1/hunter2",
        "http://h:99999/hunter2",
        "http://h\n/hunter2",
        "http://h\t.example/hunter2",
        "http://\u202eh/hunter2",
        "http://h x/hunter2",
    ],
)
def test_what_is_no_plain_address_is_refused(url: str) -> None:
    models, refusals = resolve_models({"m": table(url)}, None)
    assert models == {}
    (refusal,) = refusals
    assert (refusal.reason, refusal.path) == (Reason.INVALID_VALUE, "models.m.base_url")
    assert "hunter2" not in str(refusal.as_record())


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic", "gemini"])
def test_the_made_up_model_is_called_by_no_format_of_a_provider(api: str) -> None:
    """It has no address, and a design in which it has another `api` is not marked as made up."""
    models, refusals = resolve_models({"m": Model(provider="practice", model="practice-1", api=api)}, None)
    assert models == {}
    (refusal,) = refusals
    assert (refusal.reason, refusal.path, refusal.observed) == (Reason.INVALID_VALUE, "models.m.api", api)
    assert "Leave `api` out" in refusal.remedy
