"""Checkpoints and manifests at the edges of their rules: one side of each `and` and `or`."""

from __future__ import annotations

from builder import Story
from plants import Plants
from primitives import Body, sha256
from steps import Checkpoint

PLANTS = Plants()
plant = PLANTS.before_sealing


@plant("checkpoints.files", "the file of another, by its digest")
def _(s: Story) -> None:
    said: list[Body] = []
    s.insert_after(
        s.find("run.paused"),
        Checkpoint(entry=lambda body: said.append(dict(body))),
        Checkpoint(entry=lambda body: body.update(path=said[0]["path"], sha256=said[0]["sha256"])),
    )


def _refused(s: Story) -> Body:
    return s.manifests["manifests/0001.json"]


@plant("manifests.unbound", "refused for a reason that is no text")
def _(s: Story) -> None:
    _refused(s)["refusals"] = [{"reason": None}]


@plant("manifests.unbound", "refused for what is no refusal")
def _(s: Story) -> None:
    _refused(s)["refusals"] = ["git_dirty"]


@plant("manifests.unbound", "refused with a status that no refusal has")
def _(s: Story) -> None:
    _refused(s)["exit_status"] = 7


@plant("manifests.verdict", "admitted, and ended before it began")
def _(s: Story) -> None:
    s.manifests["manifests/0002.json"]["exit_status"] = 0


@plant("manifests.verdict", "one of two refusals was not waived")
def _(s: Story) -> None:
    manifest = s.manifests["manifests/0002.json"]
    manifest["refusals"] = [*_refused(s)["refusals"], {"reason": "disk_low"}]
    manifest["waivers"] = {"requested": ["git_dirty"], "used": ["git_dirty"]}


for _path in ("scratch/0009.json", "manifests/.0009.json", "0009.json", "manifests/last.json"):

    @plant("manifests.bound", f"one that is called {_path}")
    def _(s: Story, path: str = _path) -> None:
        said = b"what is not looked at else"
        s.find("run.resumed", -1).body["abandoned"] = [{"path": path, "sha256": sha256(said)}]
        if path.startswith(("scratch/", "manifests/.")):
            s.files[path] = said


@plant("manifests.verdict", "another stage was requested")
def _(s: Story) -> None:
    s.manifests["manifests/0002.json"]["requested"] = {"stage": "another"}


_SELECTED: Body = {"limit": 9, "arms": ["arm-1", "arm-2", "arm-3"], "models": ["moon", "luna"]}
for _what, _requested, _selection in (
    *((f"{name}, and the design selects nothing", {name: value}, None) for name, value in _SELECTED.items()),
    *((f"all, and the design has {name}", {name: None}, _SELECTED) for name in _SELECTED),
    ("another limit", {"limit": 8}, _SELECTED),
    ("a limit that is no number", {"limit": True}, {"limit": 1}),
    ("an arm less", {"arms": ["arm-1", "arm-2"]}, _SELECTED),
    ("an arm that is no list", {"arms": "arm-1"}, {"arms": ["arm-1"]}),
    ("another model", {"models": ["luna", "sol"]}, _SELECTED),
):

    @plant("manifests.verdict", f"requested: {_what}")
    def _(s: Story, requested: Body = _requested, selection: Body | None = _selection) -> None:
        if selection is not None:
            s.design["selection"] = selection
        s.manifests["manifests/0004.json"]["requested"] = requested


def selected(s: Story) -> None:
    """No fault: what was requested is the design's, whatever the order, and beside it stands more."""
    s.design["selection"] = _SELECTED
    more = {"study": "../study.toml", "stage": None, "jobs": 4}
    s.manifests["manifests/0002.json"]["requested"] = {**_SELECTED, **more, "models": ["luna", "moon"]}
    s.manifests["manifests/0004.json"]["requested"] = {**more, "stage": s.design["stage"]["name"]}


def all_of_it(s: Story) -> None:
    """No fault: nothing was left out, and all that may be selected says so."""
    s.manifests["manifests/0002.json"]["requested"] = {"limit": None, "arms": [], "models": None}


def waived(s: Story) -> None:
    """No fault: what was refused was waived, and more might have been."""
    manifest = s.manifests["manifests/0002.json"]
    manifest["refusals"] = _refused(s)["refusals"]
    manifest["waivers"] = {"requested": ["disk_low", "git_dirty"], "used": ["git_dirty"]}


SOUND = [waived, selected, all_of_it]
