"""Guards on who answers, and what: models, their keys, question sets, tools and scorers."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.admission.facts import Facts
from proctor.core.guards import Registry
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.wire.routes import routes_of

MODELS: Registry[Facts] = Registry()
guard = MODELS.guard


@guard(
    "models-callable",
    "Every model of the stage has a known provider, exact prices, and a bound on what it may answer.",
    *(Reason.PROVIDER_UNKNOWN, Reason.PRICE_UNKNOWN, Reason.OUTPUT_UNBOUNDED, Reason.INVALID_VALUE),
    Reason.FILE_UNREADABLE,
)
def models_callable(facts: Facts) -> Iterable[Refusal]:
    """What resolving the models found: a price that nobody knows is never zero, and never another model's."""
    return facts.models


@guard("keys-there", "The key of every selected model is where the study says.", Reason.KEY_MISSING)
def keys_there(facts: Facts) -> Iterable[Refusal]:
    """The variable's name is told, and never what it holds."""
    for key in facts.keys:
        if not key.there:
            yield Refusal(
                Reason.KEY_MISSING,
                f"the variable {key.variable}, which should hold the key of the model {key.model!r}, is not set",
                path=f"models.{key.model}.api_key_env",
                observed=None,
                required=key.variable,
            )


@guard("model-named", "An agent that calls a model has one.", Reason.MODEL_NEEDED)
def model_named(facts: Facts) -> Iterable[Refusal]:
    """It could do nothing."""
    calling = facts.calling
    if calling is not None and calling.able.needs_model and not calling.models:
        yield Refusal(
            Reason.MODEL_NEEDED,
            f"the agent {calling.agent!r} calls a model, and the stage names none",
            path="models",
            observed=[],
            required="one model or more",
        )


@guard("model-used", "A stage that names models has an agent that can call them.", Reason.MODEL_UNUSED)
def model_used(facts: Facts) -> Iterable[Refusal]:
    """Grades in a model's name that the model had no part in."""
    calling = facts.calling
    if calling is not None and calling.models and not calling.able.takes_model:
        yield Refusal(
            Reason.MODEL_UNUSED,
            f"the stage names models, and the agent {calling.agent!r} calls none",
            path="models",
            observed=list(calling.models),
            required=[],
        )


@guard("model-suitable", "The agent speaks the wire format of each model.", Reason.MODEL_UNSUITABLE)
def model_suitable(facts: Facts) -> Iterable[Refusal]:
    """Every one of its requests would be refused, after the world was built for it."""
    calling = facts.calling
    if calling is None or not calling.able.apis:
        return
    for model, api in calling.apis.items():
        if not calling.able.apis & routes_of(api):
            yield Refusal(
                Reason.MODEL_UNSUITABLE,
                f"the agent {calling.agent!r} does not speak the wire format of the model {model!r}",
                path=f"models.{model}.api",
                observed=api,
                required=sorted(calling.able.apis),
            )


@guard("prices-whole", "Each model's price names all kinds of tokens that the agent asks for.", Reason.PRICE_UNKNOWN)
def prices_whole(facts: Facts) -> Iterable[Refusal]:
    """The gateway passes on no request that asks for others, so the agent would give up in every attempt."""
    calling = facts.calling
    if calling is None:
        return
    for model, priced in calling.priced.items():
        missing = sorted(bucket.value for bucket in calling.able.marks if bucket.value not in priced)
        if missing:
            yield Refusal(
                Reason.PRICE_UNKNOWN,
                f"the agent {calling.agent!r} asks for {', '.join(missing)} tokens, "
                f"for which the model {model!r} has no price",
                path=f"models.{model}.price",
                observed=sorted(priced),
                required=missing,
            )


@guard(
    "gateway-reachable",
    "An agent inside of a sandbox reaches the gateway of its model.",
    Reason.GATEWAY_NEEDED,
    Reason.NETWORK_UNAVAILABLE,
)
def gateway_reachable(facts: Facts) -> Iterable[Refusal]:
    """Without a network, or one in which the gateway can listen, it has no way to its model."""
    calling = facts.calling
    if calling is None or facts.network is None or not calling.models or not calling.able.inside:
        return
    if facts.network == Network.NONE.value:
        yield Refusal(
            Reason.GATEWAY_NEEDED,
            f"the agent {calling.agent!r} calls its model from inside of the sandbox, which has no network",
            path="sandbox.network",
            observed=facts.network,
            required=[Network.GATEWAY_ONLY.value, Network.PUBLIC.value],
        )
    if facts.sandbox is not None and facts.sandbox.available and not facts.sandbox.capabilities.gateway:
        yield Refusal(
            Reason.NETWORK_UNAVAILABLE,
            f"the agent {calling.agent!r} calls its model from inside of the sandbox, where no gateway can listen here",
            path="sandbox.kind",
            observed=list(facts.sandbox.notes),
            remedy="Run as root beside the engine, take the namespace sandbox, or an agent outside (`toolloop`).",
        )


@guard("agent-answers", "An agent that is given question rows can answer them.", Reason.AGENT_UNSUITABLE)
def agent_answers(facts: Facts) -> Iterable[Refusal]:
    """A row has no sandbox that an agent could act in."""
    calling = facts.calling
    if calling is not None and calling.rows and not calling.able.answers_rows:
        yield Refusal(
            Reason.AGENT_UNSUITABLE,
            f"the agent {calling.agent!r} cannot answer question rows, and {calling.rows} are selected",
            path="agent.name",
            observed=calling.agent,
            required="an agent that answers rows",
        )


@guard(
    "questions-sound",
    "The question set can be read, and every selected row is what its scorer needs.",
    *(
        Reason.QUESTIONS_UNREADABLE,
        Reason.QUESTION_INVALID,
        Reason.FILE_MISSING,
        Reason.FILE_UNREADABLE,
        Reason.JSON_INVALID,
        Reason.UNKNOWN_NAME,
        Reason.INVALID_VALUE,
        Reason.NOT_IN_THIS_VERSION,
        Reason.TOOL_INVALID,
    ),
)
def questions_sound(facts: Facts) -> Iterable[Refusal]:
    """What reading the rows found."""
    return facts.questions


@guard(
    "functions-found",
    "Every tool and scorer in Python is there, and rows name no other tools.",
    *(Reason.TOOL_INVALID, Reason.UNKNOWN_NAME),
)
def functions_found(facts: Facts) -> Iterable[Refusal]:
    """What looking for them found; none of them is imported here."""
    return facts.functions
