"""proctor gateway: one upstream for any program, under a budget, with everything on a record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.common import json_option, print_refusals, say
from proctor.cli.words import WORD, Place
from proctor.core.mutations import Mutation
from proctor.core.wires import WireFormat

if TYPE_CHECKING:
    from proctor.runner.gateway import Serving

_APIS = [each.value for each in WireFormat]
_PRICE = "Dollars for a million tokens, in and out; where the provider caches, read from its cache and written to it."


def _price(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    amounts = tuple(part.strip() for part in value.split(","))
    if len(amounts) not in (2, 4) or not all(amounts):
        raise click.BadParameter("two amounts are needed, as in 0.25,2, or four")
    return amounts


@click.command(short_help="Serve models to any program, under a budget")
@click.option(
    "--upstream",
    type=WORD,
    required=True,
    metavar="NAME|URL",
    help="A provider (openai, anthropic, …, practice), or a base URL.",
)
@click.option("--budget", type=WORD, required=True, metavar="USD", help="What all of it may cost at most, in dollars.")
@click.option(
    "--model", "models", type=WORD, multiple=True, metavar="NAME", help="What may be asked for; again for more."
)
@click.option(
    "--record",
    type=Place(dir_okay=False),
    metavar="FILE",
    help="Where all calls are recorded; one that exists is gone on with (default: a new one in runs/gateway).",
)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N", help="A free one where it is 0.")
@click.option("--api", type=click.Choice(_APIS), help="The wire format of a URL (default: chat).")
@click.option("--price", type=WORD, callback=_price, metavar="IN,OUT[,READ,WRITE]", help=_PRICE)
@click.option("--key-env", type=WORD, metavar="NAME", help="The variable that holds the upstream's key.")
@click.option(
    "--max-output-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Most tokens of one answer (default: the model's context window).",
)
@click.option(
    "--mutate",
    "mutations",
    multiple=True,
    type=click.Choice([each.value for each in Mutation]),
    help="A change that requests may undergo; again for both.",
)
@click.option("--quiet", is_flag=True, help="No table.")
@json_option
def gateway(
    upstream: str,
    budget: str,
    models: tuple[str, ...],
    record: Path | None,
    port: int,
    api: str | None,
    price: tuple[str, ...] | None,
    key_env: str | None,
    max_output_tokens: int | None,
    mutations: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Serve the models of an upstream on 127.0.0.1, to any program that is pointed there by environment variables.

    Nothing is sent before its worst case fits what is left of the budget, and no answer ends before it is on the
    record. Ctrl-C takes nothing new, and waits for what is in flight; a second one ends that, charged at its worst
    case. Started again with the same record, the budget goes on from what that has charged.
    """
    from proctor.admission.standalone_models import GatewayRequest
    from proctor.cli.common import print_json
    from proctor.core.exits import Exit
    from proctor.report.text import safe
    from proctor.runner.gateway import own_record, serve
    from proctor.runner.launch import runs_folder

    request = GatewayRequest(
        upstream=upstream,
        budget=budget,
        record=record or own_record(runs_folder(Path.cwd())),
        models=models,
        api=api,
        key_env=key_env,
        price=price,
        max_output_tokens=max_output_tokens,
        mutations=mutations,
        port=port,
    )

    def ready(serving: Serving) -> None:
        if as_json:
            print_json(serving.as_record())
        else:
            import shlex

            for name, value in serving.variables.items():
                click.echo(f"export {name}={shlex.quote(value)}")
            say(f"serving {safe(upstream)} at {serving.base_url}, recording to {safe(serving.record)}; Ctrl-C ends it")
        sys.stdout.flush()

    served = serve(request, ready, quiet=quiet)
    print_refusals(served.refusals)
    if served.message is not None and served.exit is Exit.INFRASTRUCTURE:
        say(f"stopped: {safe(served.message)}")
    if as_json and served.calls is not None:
        print_json(served.calls)
    return int(served.exit)
