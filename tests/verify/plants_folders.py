"""What stands in a run's folder at the edges of what may, and how its attempts' folders are called."""

from __future__ import annotations

from pathlib import Path

from builder import Story
from money_stories import money_story
from plants import Plants, first_of
from steps import Step

PLANTS = Plants()
plant = PLANTS.before_sealing
spoil = PLANTS.afterwards
MONEY = Plants(money_story)


def unplanned(s: Story, folder: str) -> None:
    """An attempt at a trial that the design does not plan comes and goes, without a file, before anything else."""
    like = s.find("attempt.admitted").body
    begin = {**like, "attempt": "0" * 16 + "/0", "trial": "0" * 16, "number": 0, "folder": folder}
    end = {"attempt": begin["attempt"], "outcome": "infrastructure", "exception": "sandbox_lost"}
    end |= {"message": None, "timing": {}}
    s.insert_before(s.find("block.admitted"), Step("attempt.admitted", begin), Step("attempt.ended", end))


for _folder in ("trials/../x", "/", ""):

    @plant("attempts.joined", f"a folder that is none of the run: {_folder!r}")
    def _(s: Story, folder: str = _folder) -> None:
        unplanned(s, folder)


@plant("attempts.joined", "an agent and a world that no design plans, of a trial that none plans")
def _(s: Story) -> None:
    unplanned(s, "trials/task-00000000/0")
    ended = s.find("attempt.ended")
    own = {"attempt": ended.body["attempt"]}
    world, agent = s.find("sandbox.started", role="agent").body, s.find("agent.started").body
    facts = {**world["facts"], "kind": "docker", "network": "public"}
    s.insert_before(
        ended,
        Step("sandbox.started", {**world, **own, "facts": facts}),
        Step("agent.started", {**agent, **own, "agent": "nop"}),
    )


# Of an attempt at a row, in whose folder nothing stands.
for _what, _folder in {
    "too short": "trials/{0}",
    "too long": "trials/{0}/0/more",
    "elsewhere": "runs/{0}/0",
    "another number": "trials/{0}/1",
    "a name with a NUL": "trials/\0{0}/0",
}.items():

    @MONEY.before_sealing("attempts.joined", f"a folder that is {_what}")
    def _(s: Story, folder: str = _folder) -> None:
        body = s.find("attempt.admitted", task="row-0").body
        body["folder"] = folder.format(body["folder"].split("/")[1])


for _name in ("1", "²", "one", "0000000000"):

    @spoil("files.unlisted", f"an attempt that is called {_name}")
    def _(folder: Path, name: str = _name) -> None:
        single = next(trial for trial in sorted((folder / "trials").iterdir()) if len(list(trial.iterdir())) == 1)
        (single / name).mkdir()


@spoil("files.unlisted", "a folder among the trials whose name is short")
def _(folder: Path) -> None:
    (folder / "trials/x").mkdir()


def hidden(s: Story) -> None:
    """No fault: what starts with a dot is nobody's business, at any depth."""

    def write(_: Story, folder: Path) -> None:
        agent = first_of(folder, "trials/*/*/agent")
        for place in (agent, folder / "packs", folder / "checkpoints", folder / "manifests"):
            (place / ".hidden").touch()
        (agent / "deep/.hidden").mkdir(parents=True)
        (agent / "deep/.hidden/more").touch()

    s.afterwards.append(write)


def as_deep_as_it_may_be(s: Story) -> None:
    """No fault: folders in which nothing stands."""

    def write(_: Story, folder: Path) -> None:
        attempt = first_of(folder, "trials/*/*")
        (attempt / "/".join("d" * 200)).mkdir(parents=True)

    s.afterwards.append(write)


@spoil("files.unlisted", "folders that nest a little too deep")
def _(folder: Path) -> None:
    (first_of(folder, "trials/*/*") / "/".join("d" * 201)).mkdir(parents=True)


SOUND = (hidden, as_deep_as_it_may_be)
PLANTS += MONEY
