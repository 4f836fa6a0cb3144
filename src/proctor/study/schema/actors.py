"""Who acts, and with what: `[models.*]`, `[agent]`, `[arms.*]`, `[tools.*]`, `[arm_profiles.*]`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from proctor.core.mutations import Mutation
from proctor.core.wires import WireFormat
from proctor.study.schema.values import (
    AnyText,
    Command,
    Duration,
    Form,
    Free,
    KeyVariable,
    Later,
    Many,
    Money,
    Name,
    Names,
    PositiveCount,
    PromptShorthand,
    Share,
    Table,
    Text,
    Variable,
)


class Rate(Table):
    """A provider's rate limits."""

    rpm: PositiveCount | None = Field(default=None, description="Requests a minute.")
    tpm: Annotated[int | None, Field(ge=1), Form("a whole number, from 1")] = Field(
        default=None, description="Tokens a minute."
    )


class Price(Table):
    """Prices of one model, over the table."""

    input: Money = Field(description="Input tokens.")
    output: Money = Field(description="Output tokens.")
    cache_read: Money | None = Field(default=None, description="Input tokens read from the provider's cache.")
    cache_write: Money | None = Field(default=None, description="Input tokens written to the provider's cache.")
    per: Literal["1M", "1k", "1"] = Field(default="1M", description="How many tokens an amount is for.")
    source: Text = Field(description="Where the price was read, and when.")


class Model(Table):
    """One model behind a provider's API."""

    provider: Name = Field(
        description="`openai`, `anthropic`, `google`, `practice` (a made-up model inside proctor that needs no key), "
        "or any other provider of the price table that speaks OpenAI's chat format."
    )
    api: Annotated[WireFormat, Field(strict=False)] | None = Field(
        default=None,
        description="The wire format; the provider's own otherwise, `chat` for those without one. Agents inside of a "
        "sandbox may call a `chat` or `responses` model by either.",
    )
    model: Text = Field(description="The provider's name of the model.")
    effort: Name | None = Field(default=None, description="Reasoning effort, in the provider's words.")
    max_output_tokens: PositiveCount | None = Field(
        default=None, description="Upper bound of one answer. Needed, but of the provider `practice`."
    )
    request_timeout: Duration = Field(default=180, description="Deadline of one request.")
    base_url: Text | None = Field(default=None, description="Any compatible server; the provider's own otherwise.")
    api_key_env: KeyVariable | None = Field(default=None, description="The variable's name, never the key.")
    rate: Rate = Field(default=Rate(), description="Rate limits.")
    context_window: PositiveCount | None = Field(
        default=None,
        description="Most tokens that can go in: the bound where a request's input is not in its body (images, stored "
        "conversations). The price table's otherwise; without one such requests are refused.",
    )
    mutations: Many[Annotated[Mutation, Field(strict=False)]] = Field(
        default=(),
        description="What may be changed of the requests of agents inside: a chat stream asked for its usage; more "
        "output than `max_output_tokens` cut down to it. Nothing otherwise; each change is recorded.",
    )
    price: Price | None = Field(default=None, description="Prices, over the table.")


class Pacing(Table):
    """How a long-running agent uses its time."""

    improvement: Literal["until_deadline", "until_done"] = Field(
        default="until_done", description="When it stops improving."
    )
    max_passes: PositiveCount | None = Field(
        default=None, description="Most improvement passes; wins under every policy."
    )
    finish_share: Share | None = Field(default=None, description="Share of the time kept for finishing.")
    stall_rounds: PositiveCount | None = Field(
        default=None, description="Rounds without progress that count as a stall."
    )


class AgentTable(Table):
    """Who works on the tasks."""

    name: Annotated[Name, Later("acp", "service")] = Field(
        description="`oracle` (the task's own solution), `nop` (does nothing), `command` (a program of yours), "
        "`toolloop` (a model with a shell, or with the tools of a question set), `mini-swe-agent`, `claude-code`, "
        "`codex` (`proctor agents` installs them), or an agent that an installed package brings."
    )
    version: Text | None = Field(
        default=None,
        description="Of an installed agent, the version to run (the newest installed otherwise); what you call the "
        "program of `command`, recorded.",
    )
    expect_version: Text | None = Field(
        default=None, description="Refuse any other version that the agent reports of itself."
    )
    timeout: Duration | None = Field(
        default=None, description="Deadline of one attempt; the task's own otherwise, the stricter where both are."
    )
    idle_timeout: Duration | None = Field(
        default=None, description="Longest time without any output or exchange, of an agent inside the sandbox."
    )
    command: Command | None = Field(
        default=None, description="The program of the agent `command`, run in the task's working directory."
    )
    files: Text | None = Field(default=None, description="A folder put at `/agent` inside the sandbox.")
    env: dict[Variable, AnyText] = Field(default={}, description="Variables of the agent's environment.")
    settings: Free = Field(
        default={}, description="Settings of `toolloop`, or of an agent that a package brings, in its own words."
    )
    pacing: Annotated[Pacing | None, Later()] = Field(default=None, description="Handed to agents that know it.")


class Prompt(Table):
    """Text that an arm adds to the instruction."""

    text: Text | None = Field(default=None, description="The text itself.")
    file: Text | None = Field(default=None, description="A UTF-8 file that holds the text.")


class Config(Table):
    """Settings that an arm changes: what is named here replaces the study's own, key by key."""

    agent: Free = Field(default={}, description="Keys of `[agent]`, but `name`.")
    sandbox: Free = Field(default={}, description="Keys of `[sandbox]`.")
    metadata: Free = Field(default={}, description="Facts about the arm; change nothing.")


class ModelSettings(Table):
    """Model settings that an arm changes."""

    effort: Name | None = Field(default=None, description="Reasoning effort.")
    max_output_tokens: PositiveCount | None = Field(default=None, description="Upper bound of one answer.")


class Arm(Table):
    """A named set of differences against the baseline; an empty table is the baseline itself."""

    prompt: Annotated[Prompt | None, PromptShorthand, Form('text, or `{ file = "…" }`')] = Field(
        default=None, description="Text put after the task's instruction, a blank line between."
    )
    skills: Text | None = Field(
        default=None,
        description="A skill folder (it holds SKILL.md) or a folder of them; each is put at `/skills/<name>`.",
    )
    config: Config = Field(default=Config(), description="Changed settings.")
    environment: Annotated[Text | None, Later()] = Field(default=None, description="Another environment, by reference.")
    tools: Names | None = Field(default=None, description="The tools of this arm, of question rows; all otherwise.")
    model: ModelSettings | None = Field(default=None, description="Changed model settings.")


class ToolPrice(Table):
    """What one use of a tool costs."""

    unit: Literal["call"] = Field(default="call", description="What is counted.")
    usd: Money = Field(description="Price of one unit.")
    source: Text = Field(description="Where the price was read, and when.")


class Tool(Table):
    """A tool of question sets."""

    python: Text | None = Field(default=None, description="`module:function`, run in worker processes.")
    pool: PositiveCount = Field(default=1, description="Worker processes for each model.")
    provider_side: Annotated[Name | None, Later()] = Field(default=None, description="A tool that the provider runs.")
    price: Annotated[ToolPrice | None, Later()] = Field(default=None, description="What a call costs.")


class ArmProfile(Table):
    """What must hold of an arm's effective tools."""

    requires: Names = Field(default=(), description="Tools that must be there.")
    forbids: Names = Field(default=(), description="Tools that must not be there.")
    superset_of: Name | None = Field(default=None, description="An arm all of whose tools must be there.")
    deny: Many[Text] = Field(default=(), description="Sources that must not be searched.")
