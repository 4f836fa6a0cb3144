"""What is said of the reasons about money, models and their providers."""

from __future__ import annotations

from proctor.core.families import Family, Words

BUDGET_ABSENT = Words(
    Family.BUDGET,
    "A model of the stage is priced, and the stage has no budget.",
    "`proctor plan STUDY --assume MODEL=USD --write` writes one from what the stage is to cost.",
)
BUDGET_INCOMPLETE = Words(
    Family.BUDGET,
    "Expected costs, caps and reserves are not given for exactly the models of the stage.",
    "`proctor plan STUDY --write` fills them in.",
)
BUDGET_INCONSISTENT = Words(
    Family.BUDGET,
    "The amounts of a budget do not follow from each other as its rules want.",
    "`proctor plan STUDY --write` computes them.",
)
PRIOR_SPEND_UNCOUNTED = Words(
    Family.BUDGET,
    "`spent_before` is less than what is known to be spent already.",
    "Raise spent_before to that amount at least.",
)
PRICE_UNKNOWN = Words(
    Family.BUDGET,
    "A model, token bucket or tool has no exact price.",
    "Give its price in the study, with its source, or use an id that the table has.",
)
OUTPUT_UNBOUNDED = Words(
    Family.BUDGET,
    "Nothing bounds how much a model may answer, so no worst case can be held.",
    "Set max_output_tokens of the model.",
)
SPEND_NOT_CONFIRMED = Words(
    Family.BUDGET, "The run can cost money, and nobody agreed to that.", "Answer yes when asked, or give --yes."
)
CEILING_REACHED = Words(
    Family.BUDGET,
    "The hard ceiling leaves no room for what was to be paid.",
    "A resume starts nothing more; a larger budget is another run, whose `spent_before` counts this one.",
    ends_run=True,
)
CAP_REACHED = Words(
    Family.BUDGET,
    "The cap leaves no room for the reserve of another block.",
    "No block that needs it follows in this run; a larger cap is another run, whose `spent_before` counts this one.",
    ends_run=True,
)
OVERRUN = Words(
    Family.BUDGET,
    "A provider billed more than was held, so nothing more is admitted.",
    "See `proctor show RUN` for the exchange; its bound or price is wrong.",
    ends_run=True,
)
LEASE_STALE = Words(
    Family.BUDGET, "A lease to spend was used after it had ended.", "Start the attempt anew; nothing was sent."
)
MODEL_NEEDED = Words(
    Family.STUDY,
    "The agent calls a model, and the stage names none.",
    "Define one as [models.NAME] in a study, and name it in the stage's `models` if it has that; --task has none.",
)
MODEL_UNUSED = Words(
    Family.STUDY,
    "The stage names models, and the agent calls none: a column of grades would claim what nothing did.",
    "Remove the stage's models, or take an agent that calls them.",
)
PROVIDER_UNKNOWN = Words(
    Family.STUDY,
    "The provider is not known, so neither is its wire format.",
    "Name one that the message lists; for a compatible server, its format with `base_url`.",
)
KEY_MISSING = Words(
    Family.PROVIDER,
    "The variable that should hold a model's key is not set.",
    "Set it in the environment, or in a .env file beside the study.",
)
KEY_REJECTED = Words(
    Family.PROVIDER, "The provider rejects the key.", "Correct the key and `proctor resume`.", ends_run=True
)
QUOTA_EXHAUSTED = Words(
    Family.PROVIDER,
    "The provider says that the account has no credit or quota left.",
    "Mend the account and `proctor resume`.",
    ends_run=True,
)
MODEL_NOT_FOUND = Words(
    Family.PROVIDER,
    "The provider has no model of that name for this key.",
    "Correct `model`, and start another run.",
    ends_run=True,
)
PROVIDER_UNREACHABLE = Words(
    Family.PROVIDER, "The provider could not be reached.", "See that base_url is right and the network is up."
)
PROVIDER_TIMEOUT = Words(
    Family.PROVIDER, "The provider did not answer in time.", "Raise request_timeout, or try later."
)
RATE_LIMITED = Words(
    Family.PROVIDER, "The provider kept refusing for the rate of requests.", "Set `rate` of the model lower."
)
PROVIDER_FAILED = Words(
    Family.PROVIDER, "The provider answered with an error of its own.", "`proctor resume` may try it anew."
)
REQUEST_REJECTED = Words(
    Family.PROVIDER, "The provider rejects the request as it is.", "Read the message: it is not sent again."
)
CONTEXT_EXCEEDED = Words(
    Family.PROVIDER, "The conversation is longer than the model takes.", "Lower the agent's limits."
)
REPLY_UNREADABLE = Words(
    Family.PROVIDER, "The provider's answer cannot be read as its format.", "See the exchange's record."
)
REPLY_TOO_LARGE = Words(
    Family.PROVIDER, "The provider's answer is larger than any answer can be.", "See the exchange's record."
)

MODEL_UNSUITABLE = Words(
    Family.STUDY,
    "The agent does not speak the wire format of the model.",
    "Take an agent that does, or a model of a provider that it speaks to.",
)
GATEWAY_NEEDED = Words(
    Family.STUDY,
    "The agent runs inside of the sandbox and calls a model, and its network lets it reach no gateway.",
    'Set the network to "gateway-only" or wider.',
)
ROUTE_UNKNOWN = Words(
    Family.GATEWAY, "The gateway has no such route for this model.", "Use a route of the model's own wire format."
)
TOKEN_UNKNOWN = Words(
    Family.GATEWAY, "The token is none, or that of an attempt that is over.", "Use the one that the agent was handed."
)
MODEL_NOT_LISTED = Words(
    Family.GATEWAY, "The request is for another model than the trial's.", "Have the agent ask for the trial's model."
)
REQUEST_UNREADABLE = Words(
    Family.GATEWAY, "The request's body cannot be read as its format.", "Send what the format's route takes."
)
REQUEST_TOO_LARGE = Words(Family.GATEWAY, "The request's body is larger than any that is sent.", "Send less at once.")
FEATURE_UNPRICED = Words(
    Family.GATEWAY,
    "The request uses a feature that changes its price in a way that cannot be bounded.",
    "Leave the feature out, or give the model's context_window where that bounds it.",
)
OUTPUT_ABOVE_BOUND = Words(
    Family.GATEWAY,
    "The request allows more output than the design does.",
    "Raise max_output_tokens, or admit the mutation clamp_max_output.",
)
