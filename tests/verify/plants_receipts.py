"""Faults of receipts, and of what had to be anchored."""

from __future__ import annotations

import base64
from collections.abc import Callable

from anchored import (
    START,
    AnchoredStory,
    anchored,
    anchored_story,
    moment,
)
from builder import Story
from plants import STRANGER, Plant, Plants
from primitives import Body, sha256
from steps import Step

PLANTS = Plants(anchored_story)
Tell = Callable[[Body], None]
Do = Callable[[AnchoredStory], None]


def plant(check: str, what: str) -> Callable[[Do], Do]:
    """A fault in the story."""

    def declare(alter: Do) -> Do:
        PLANTS.append(Plant(check, what, lambda s: alter(anchored(s)), story=anchored_story))
        return alter

    return declare


def receipt(check: str, what: str, anchor: str = "git", nth: int = 1) -> Callable[[Tell], Tell]:
    """A fault in what one receipt says; its entry names it as it is then."""

    def declare(tell: Tell) -> Tell:
        def alter(s: Story) -> None:
            anchored(s).made_at(anchor)[nth].receipt = tell

        PLANTS.append(Plant(check, what, alter, story=anchored_story))
        return tell

    return declare


# The receipts, and who names them.


@plant("anchors.receipts", "another digest")
def _(s: AnchoredStory) -> None:
    s.pushes[0].entry = lambda body: body.update(sha256=sha256(b"another"))


@plant("anchors.receipts", "another path")
def _(s: AnchoredStory) -> None:
    s.pushes[0].entry = lambda body: body.update(path="checkpoints/first.git.json")


@plant("anchors.receipts", "of the other anchor, by its entry")
def _(s: AnchoredStory) -> None:
    s.pushes[2].entry = lambda body: body.update(anchor="drop")


@plant("anchors.receipts", "not there")
def _(s: AnchoredStory) -> None:
    s.pushes[1].written = False


@plant("anchors.receipts", "named by no entry")
def _(s: AnchoredStory) -> None:
    s.drop(s.find("checkpoint.anchored", 2))


@plant("anchors.receipts", "named twice")
def _(s: AnchoredStory) -> None:
    s.insert_before(s.find("run.ended"), s.pushes[0].step())


@plant("anchors.receipts", "named before its checkpoint is")
def _(s: AnchoredStory) -> None:
    made = s.checkpoint_at(1)
    made.named = False
    s.insert_before(s.find("run.resumed"), Step("checkpoint.made", {}))


@plant("anchors.receipts", "not canonical")
def _(s: AnchoredStory) -> None:
    s.pushes[0].encode = lambda data: data + b"\n"


@receipt("anchors.receipts", "a field more")
def _(body: Body) -> None:
    body["by"] = "me"


@receipt("anchors.receipts", "a field less")
def _(body: Body) -> None:
    del body["attempts"]


@receipt("anchors.receipts", "format 2")
def _(body: Body) -> None:
    body["format"] = 2


@receipt("anchors.receipts", "format true")
def _(body: Body) -> None:
    body["format"] = True


@receipt("anchors.receipts", "tried 0 times")
def _(body: Body) -> None:
    body["attempts"] = 0


@receipt("anchors.receipts", "of the other anchor", "drop")
def _(body: Body) -> None:
    body["anchor"] = "git"


@receipt("anchors.receipts", "a time that is none")
def _(body: Body) -> None:
    body["ended"] = "2031-02-30T00:00:00.000000Z"


@receipt("anchors.receipts", "base64 with spare bits")
def _(body: Body) -> None:
    objects = body["snapshot"]["objects"]
    objects["tree"] = objects["tree"].rstrip("=")[:-1] + "f" + "=" * (-len(objects["tree"].rstrip("=")) % 4)


@receipt("anchors.identity", "of another run")
def _(body: Body) -> None:
    body["origin"] = "proctor/run/another"


@receipt("anchors.identity", "of another place than the design's")
def _(body: Body) -> None:
    body["location"] = "https://elsewhere.example/anchors.git"


@receipt("anchors.identity", "of another size")
def _(body: Body) -> None:
    body["size"] += 1


@receipt("anchors.identity", "of another checkpoint file", "drop")
def _(body: Body) -> None:
    body["sha256"] = sha256(b"another")


@receipt("anchors.identity", "of another checkpoint file, unnamed", "drop", nth=-1)
def _(body: Body) -> None:
    body["sha256"] = sha256(b"another")


def _by_another(role: bytes) -> Do:
    def alter(s: AnchoredStory) -> None:
        mine, other = s.signer.fingerprint.encode(), STRANGER.fingerprint.encode()
        s.pushes[0].commit = lambda data: data.replace(role + b" proctor <" + mine, role + b" proctor <" + other)

    return alter


plant("anchors.identity", "a commit of another author")(_by_another(b"author"))
plant("anchors.identity", "a commit of another committer")(_by_another(b"committer"))


@plant("anchors.identity", "a commit without an author")
def _(s: AnchoredStory) -> None:
    s.pushes[0].commit = lambda data: data.replace(b"\nauthor ", b"\nwriter ")


@plant("anchors.identity", "a commit with two authors")
def _(s: AnchoredStory) -> None:
    s.pushes[0].commit = lambda data: data.replace(b"\ncommitter ", b"\nauthor proctor <me> 1 +0000\ncommitter ")


# 0.0 is written as 0 in canonical JSON, and so cannot be told from it
for code in (1, -1, False, "0", 0.5, None, [], {}):
    receipt("anchors.pushed", f"return code {code!r}")(lambda body, code=code: body.update(return_code=code))


@receipt("anchors.chronology", "ended before it started", "drop")
def _(body: Body) -> None:
    body["ended"] = moment(0)


@plant("anchors.chronology", "started before the one before it did")
def _(s: AnchoredStory) -> None:
    s.made_at("drop")[2].started = s.made_at("drop")[1].started - 1


@plant("anchors.chronology", "ended before the one before it did")
def _(s: AnchoredStory) -> None:
    s.made_at("drop")[1].ended = s.made_at("drop")[2].ended + 1


@receipt("anchors.chronology", "started after its commit was made")
def _(body: Body) -> None:
    body["started"] = body["ended"]


def _made_at(role: bytes, second: int) -> Do:
    def alter(s: AnchoredStory) -> None:
        push = s.made_at("git")[1]
        was, then = (b"%d +0000" % (START + each) for each in (push.started + 1, push.started + second))

        def commit(data: bytes) -> bytes:
            lines = data.split(b"\n")
            return b"\n".join(line.replace(was, then) if line.startswith(role) else line for line in lines)

        push.commit = commit

    return alter


plant("anchors.chronology", "its commit's author wrote before")(_made_at(b"author", -1))
plant("anchors.chronology", "its commit's committer wrote after")(_made_at(b"committer", 3))


@receipt("anchors.snapshot", "of another ref")
def _(body: Body) -> None:
    body["snapshot"]["ref"] = "refs/heads/main"


@receipt("anchors.snapshot", "of another commit than its content")
def _(body: Body) -> None:
    body["snapshot"]["commit"] = "0" * 40


@receipt("anchors.snapshot", "of another tree than its content")
def _(body: Body) -> None:
    tree = b"100644 checkpoint\0" + bytes(20)
    body["snapshot"]["objects"]["tree"] = base64.b64encode(tree).decode()


@plant("anchors.snapshot", "a commit that does not begin with its tree")
def _(s: AnchoredStory) -> None:
    s.pushes[0].commit = lambda data: b"encoding x\n" + data


for what, start in {"a link": b"120000 checkpoint\0", "of another name": b"100644 Checkpoint\0"}.items():

    @plant("anchors.snapshot", f"a file that is {what}")
    def _(s: AnchoredStory, start: bytes = start) -> None:
        s.pushes[0].tree = lambda data: start + data[18:]


@plant("anchors.snapshot", "a tree with a second file")
def _(s: AnchoredStory) -> None:
    s.pushes[0].tree = lambda data: data + b"100644 more\0" + bytes(20)


@plant("anchors.snapshot", "the file of the commit is another")
def _(s: AnchoredStory) -> None:
    s.pushes[0].tree = lambda data: data[:18] + bytes(20)


@receipt("anchors.snapshot", "another path", "drop")
def _(body: Body) -> None:
    body["snapshot"]["path"] = "elsewhere.note"


@receipt("anchors.snapshot", "another digest", "drop")
def _(body: Body) -> None:
    body["snapshot"]["sha256"] = sha256(b"another")


@receipt("anchors.snapshot", "another length", "drop")
def _(body: Body) -> None:
    body["snapshot"]["size"] += 1


# What had to be anchored.


@plant("anchors.required", "a block before an anchor took a checkpoint")
def _(s: AnchoredStory) -> None:
    s.move_after(s.find("block.admitted"), s.find("checkpoint.anchored", anchor="drop"))


@plant("anchors.required", "a block after a resume, before an anchor took a checkpoint again")
def _(s: AnchoredStory) -> None:
    s.move_after(s.find("block.admitted", 1), s.find("checkpoint.anchored", 2, anchor="git"))


@plant("anchors.required", "a block while an anchor does not take any")
def _(s: AnchoredStory) -> None:
    failed = s.find("anchor.failed")
    s.insert_before(s.find("block.admitted", 1), Step("anchor.failed", dict(failed.body)))


@plant("anchors.covered", "the last checkpoint was not pushed")
def _(s: AnchoredStory) -> None:
    s.pushes[-1].written = False


@plant("anchors.chronology", "a commit, and ended before it started")
def _(s: AnchoredStory) -> None:
    def swap(body: Body) -> None:
        body.update(started=body["ended"], ended=body["started"])

    s.made_at("git")[0].receipt = swap


@plant("anchors.chronology", "the first ended before it started")
def _(s: AnchoredStory) -> None:
    # no push to that place came before, so that there is none that this one ended before
    s.made_at("drop")[0].receipt = lambda body: body.update(ended=moment(0))


SOUND: list[Callable[[Story], None]] = []


@SOUND.append
def _(s: Story) -> None:
    """Anchors that are not required may fail."""
    s.design["anchor"]["required"] = False
    for push in anchored(s).pushes[-2:]:
        push.written = False
    failed = s.find("anchor.failed")
    s.insert_before(s.find("block.admitted", 1), Step("anchor.failed", dict(failed.body)))


@SOUND.append
def _(s: Story) -> None:
    """Pushed to a place that the design does not have."""
    del s.design["anchor"]
    anchored(s).pushes[0].receipt = lambda body: body.update(location="elsewhere")


@SOUND.append
def _(s: Story) -> None:
    """Pushed within the second in which the one before was, and in other time zones."""
    push = anchored(s).made_at("git")[1]
    push.started = push.ended = anchored(s).made_at("git")[0].ended
    push.commit = lambda data: data.replace(
        b"%d +0000" % (START + push.started + 1), b"%d -0730" % (START + push.started)
    )


@SOUND.append
def _(s: Story) -> None:
    """two pushes start and end as one, and the clock that the commits are written by is coarse."""
    first, second = anchored(s).made_at("git")[:2]
    second.started, second.ended = first.started, first.ended


@SOUND.append
def _(s: Story) -> None:
    """a commit is made in the second in which its push ends, one in that in which it starts."""
    for push, second in zip(anchored(s).made_at("git"), (0, 2), strict=False):
        was = b"%d +0000" % (START + push.started + 1)
        now = b"%d +0000" % (START + push.started + second)
        push.commit = lambda data, was=was, now=now: data.replace(was, now)


@SOUND.append
def _(s: Story) -> None:
    """one anchor takes a checkpoint, the other fails and takes it all the same, and a block is admitted."""
    drop, git = (s.find("checkpoint.anchored", 2, anchor=anchor) for anchor in ("drop", "git"))
    s.drop(git)
    s.insert_after(drop, Step("anchor.failed", dict(s.find("anchor.failed").body)), git)
