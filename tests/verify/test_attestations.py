"""Attestations: each fault is found by its own check and no other; the published envelope; whatever is hostile."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from anchored import LOCATIONS, anchored_story
from attestation_plants import FAULTS, STRANGER, Fault, remember, seal, statement
from hypothesis import given
from hypothesis import strategies as st
from money_stories import money_story
from primitives import Body, Signer, canonical
from proof_plants import note
from stories import full_story
from test_scope import part, stopped

from proctor_verify import notes
from proctor_verify.attestations import ATTESTATION_CHECKS, NOT_SAID, verify_attestation
from proctor_verify.checks import CHECKS
from proctor_verify.cli import main
from proctor_verify.elsewhere import Asked
from proctor_verify.report import Status
from proctor_verify.standalone import FileReport, render_text
from proctor_verify.statements import NOTHING

CASES = Path(__file__).resolve().parents[3] / "shared/cases/json/dsse"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = full_story().write(tmp_path_factory.mktemp("attested") / "run")
    remember(folder)
    return folder


def checked(
    data: bytes,
    run: Path | None,
    key: str | None = Signer().vkey,
    without: str | None = None,
    asked: Asked = NOTHING,
) -> FileReport:
    trust = notes.trust_root(key) if key is not None else None
    kept = [check for check in ATTESTATION_CHECKS if check.id != without]
    return verify_attestation(data, trust, None if run is None else str(run), asked, checks=kept)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.id for fault in FAULTS])
def test_one_fault_one_finding(fault: Fault, run: Path, tmp_path: Path) -> None:
    data, held = fault.make(run), None
    if fault.run:
        held = shutil.copytree(run, tmp_path / "run")
        fault.spoil_run(held)
    report = checked(data, held)
    assert report.failed() == [fault.check]
    assert report.exit_status == 1
    found = next(result for result in report.results if result.check == fault.check)
    assert found.findings[0].path and found.findings[0].seen
    assert checked(data, held, without=fault.check).failed() == []


def test_every_check_has_a_fault_of_its_own() -> None:
    assert {fault.check for fault in FAULTS} | {"attestation.anchored"} == {check.id for check in ATTESTATION_CHECKS}


@pytest.mark.parametrize("key", [Signer().vkey, Signer().fingerprint])
def test_what_is_true_holds(run: Path, key: str) -> None:
    data = canonical(seal(canonical(statement(run)), Signer()))
    alone, held = checked(data, None, key), checked(data, run, key)
    assert alone.exit_status == held.exit_status == 0
    not_asked = [result.check for result in alone.results if result.status is Status.NOT_APPLICABLE]
    assert not_asked == ["attestation.subjects", "attestation.run", "attestation.anchored"]
    assert {result.check: result.status for result in held.results if result.check not in not_asked[2:]} == {
        check.id: Status.PASS for check in ATTESTATION_CHECKS[:-1]
    }
    pretty = json.dumps(json.loads(data), indent=2).encode()
    assert checked(pretty, run, key).exit_status == 0, "an envelope need not be canonical"


def test_further_signatures_do_no_harm(run: Path) -> None:
    payload = canonical(statement(run))
    envelope = seal(payload, Signer())
    envelope["signatures"] = [*seal(payload, STRANGER)["signatures"], *envelope["signatures"]]
    assert checked(canonical(envelope), run).exit_status == 0


def test_where_it_is_anchored_is_what_receipts_say(tmp_path: Path) -> None:
    story = anchored_story()
    run = story.write(tmp_path / "run")
    said = statement(run)
    last = max(push.size for push in story.pushes)
    said["predicate"]["anchored"] = [
        {
            "anchor": push.anchor,
            "location": LOCATIONS[push.anchor],
            "commit": push.id(story) if push.anchor == "git" else None,
        }
        for push in story.pushes
        if push.size == last
    ]
    assert len(said["predicate"]["anchored"]) == 2
    assert checked(canonical(seal(canonical(said), Signer())), run).exit_status == 0
    said["predicate"]["anchored"][0]["commit"] = "0" * 40
    assert checked(canonical(seal(canonical(said), Signer())), run).failed() == ["attestation.run"]


AT: dict[str, tuple[Callable[[Path], None], Status, Status]] = {
    "as the run pushed": (lambda place: None, Status.PASS, Status.PASS),
    "only earlier ones": (lambda place: max(place.iterdir()).unlink(), Status.CANNOT_TELL, Status.CANNOT_TELL),
    "nothing of the run": (lambda place: shutil.rmtree(place), Status.FAIL, Status.FAIL),
    "another root at that size": (
        lambda place: max(place.iterdir()).write_bytes(_another(max(place.iterdir()))),
        Status.FAIL,
        Status.FAIL,
    ),
    "what is no checkpoint": (lambda place: min(place.iterdir()).write_text("hello"), Status.FAIL, Status.FAIL),
    # with the run at hand, what its journal does not have at a smaller size is seen, too
    "another root before": (
        lambda place: min(place.iterdir()).write_bytes(_another(min(place.iterdir()))),
        Status.PASS,
        Status.FAIL,
    ),
}


def _another(file: Path) -> bytes:
    origin = file.read_text().partition("\n")[0]
    return note(Signer(), int(file.stem), bytes(32), origin)


@pytest.mark.parametrize(("spoil", "alone", "with_run"), AT.values(), ids=AT)
def test_it_is_held_against_an_anchor(
    spoil: Callable[[Path], None], alone: Status, with_run: Status, tmp_path: Path
) -> None:
    run, place = anchored_story().write(tmp_path / "run"), tmp_path / "place"
    data = canonical(seal(canonical(statement(run)), Signer()))
    notes_of = sorted((run / "checkpoints").glob("*.note"))
    run_id = notes_of[0].read_text().partition("\n")[0].rpartition("/")[2]
    (place / run_id).mkdir(parents=True)
    for file in notes_of:
        shutil.copy(file, place / run_id)
    spoil(place / run_id)
    for held, status in ((None, alone), (run, with_run)):
        report = checked(data, held, asked=Asked((str(place),)))
        found = next(result for result in report.results if result.check == "attestation.anchored")
        assert (found.status, report.exit_status) == (status, 0 if status is Status.PASS else 1), render_text(report)
        assert report.failed() == (["attestation.anchored"] if status is Status.FAIL else [])
        left = checked(data, held, without="attestation.anchored", asked=Asked((str(place),)))
        assert left.exit_status == 0, render_text(left)


def test_an_anchor_on_the_command_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.dsse.json"
    file.write_bytes(canonical(seal(canonical(statement(run)), Signer())))
    last = max((run / "checkpoints").glob("*.note"))
    kept = shutil.copy(last, tmp_path / "kept.note")
    assert main([str(file), "--key", Signer().vkey, "--anchor", str(kept)]) == 0
    assert "its checkpoint stands at" in capsys.readouterr().out
    assert main([str(file), str(run), "--key", Signer().vkey, "--anchor", str(kept)]) == 0
    # what came with the run shows nothing that the run does not
    assert main([str(file), str(run), "--key", Signer().vkey, "--anchor", str(last)]) == 2


def test_whose_key_it_is_cannot_be_told_without_one(run: Path) -> None:
    data = canonical(seal(canonical(statement(run)), Signer()))
    report = checked(data, run, None)
    assert report.exit_status == 0 and any("who signed" in caveat for caveat in report.caveats)
    assert checked(data, run, STRANGER.fingerprint).failed() == ["attestation.signed"]


def test_a_made_up_model_is_said(tmp_path: Path) -> None:
    story = money_story()
    story.design["models"][0] |= {"provider": "practice", "api": "practice", "base_url": None, "synthetic": True}
    run = story.write(tmp_path / "run")
    said = statement(run)
    name = story.design["models"][0]["name"]
    said["predicate"]["synthetic"] = [name]
    report = checked(canonical(seal(canonical(said), Signer())), None)
    assert render_text(report).startswith(f"SYNTHETIC  {name}: made up")
    assert render_text(report).splitlines()[-1] == "VERIFIED, NOT COMPLETE (10 of 12), SYNTHETIC"


def test_a_part_says_so_and_so_does_a_run_that_stopped(tmp_path: Path) -> None:
    story = part()
    run = story.write(tmp_path / "run")
    for held in (None, run):
        report = checked(canonical(seal(canonical(statement(run)), Signer())), held)
        assert report.exit_status == 0 and report.marks == ("PART",), render_text(report)
        assert report.facts["PART"].endswith("limit 2; arms arm-0, arm-1")
    said = statement(run)
    said["predicate"]["selection"] = None
    assert checked(canonical(seal(canonical(said), Signer())), run).failed() == ["attestation.run"]
    left = stopped().write(tmp_path / "left")
    report = checked(canonical(seal(canonical(statement(left)), Signer())), None)
    assert render_text(report).endswith("\nVERIFIED, NOT COMPLETE (3 of 8): attestation of a run, without the run")


def test_one_of_an_older_form_does_not_say_whether_it_is_of_a_part(tmp_path: Path) -> None:
    run = part().write(tmp_path / "run")
    said = statement(run)
    del said["predicate"]["selection"]
    data = canonical(seal(canonical(said), Signer()))
    alone, with_run = checked(data, None), checked(data, run)
    assert (alone.exit_status, alone.marks) == (0, ()) and NOT_SAID in alone.caveats
    assert (with_run.exit_status, with_run.marks) == (0, ("PART",)) and NOT_SAID not in with_run.caveats


def test_it_says_whether_the_run_was_looked_at_and_who_speaks(run: Path) -> None:
    data = canonical(seal(canonical(statement(run)), Signer()))
    alone, with_run, nobody = checked(data, None), checked(data, run), checked(data, None, None)
    assert "nobody looked at the run itself" in alone.shown[-1] and alone.shown[-1].startswith("the operator says")
    assert nobody.shown[-1].startswith("whoever signed it says")
    assert "stands here, holds" in with_run.shown[-1] and "says that" not in with_run.shown[-1]
    assert render_text(alone).endswith("VERIFIED: attestation of a run, without the run")
    assert render_text(with_run).endswith("VERIFIED: attestation of a run, with the run")


def test_a_subject_that_is_larger_than_anybody_reads(run: Path, tmp_path: Path) -> None:
    data, held = canonical(seal(canonical(statement(run)), Signer())), shutil.copytree(run, tmp_path / "run")
    with (held / "summary.json").open("ab") as file:
        file.truncate(1 << 40)
    found = next(each for each in checked(data, held).results if each.check == "attestation.subjects")
    assert found.status is Status.FAIL and "are not read" in found.findings[0].seen


def test_nothing_of_a_run_is_read_for_what_nobody_signed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor_verify.attestations.verify", lambda *_, **__: pytest.fail("the run was read"))
    report = checked(canonical(seal(canonical(statement(run)), STRANGER)), run)
    assert report.failed() == ["attestation.signed"]
    states = {result.check: result.status for result in report.results}
    assert states["attestation.subjects"] is states["attestation.run"] is Status.NOT_APPLICABLE


def test_checks_that_nobody_here_knows_cannot_be_told_and_those_left_out_are(run: Path) -> None:
    said = statement(run)
    checks = {check.id: "pass" for check in CHECKS}
    said["predicate"]["verification"]["checks"] = checks
    assert not [each for each in _caveats(said) if "checks known here" in each]
    del checks["journal.chain"], checks["packs.frames"]
    (told,) = [each for each in _caveats(said) if "checks known here" in each]
    assert told.startswith(f"how 2 of the {len(CHECKS)} checks")
    checks["everything"] = "pass"
    report = checked(canonical(seal(canonical(said), Signer())), None)
    found = next(each for each in report.results if each.check == "attestation.agrees")
    assert (found.status, report.exit_status) == (Status.CANNOT_TELL, 1) and "everything" in found.seen


def _caveats(said: Body, run: Path | None = None) -> tuple[str, ...]:
    report = checked(canonical(seal(canonical(said), Signer())), run)
    assert report.exit_status == 0, render_text(report)
    return report.caveats


def test_a_timestamp_is_its_own_word_and_one_before_the_end_is_told(run: Path) -> None:
    said = statement(run)
    ended = json.loads((run / "journal.jsonl").read_bytes().splitlines()[-1])["time"]
    early = [(ended, False), ("2020-01-01T00:00:00.000000Z", True)]
    for time, contradicts in early:
        said["predicate"]["timestamp"] = {"time": time, "sha256": "0" * 64}
        assert "whether its timestamp is one: nobody looked at its .tsr file" in _caveats(said)
        assert any(each.startswith("times: its timestamp") for each in _caveats(said, run)) == contradicts
        assert not any(each.startswith("times: its timestamp") for each in _caveats(said))


def test_a_verdict_of_many_words_stands_alone_on_the_last_line(tmp_path: Path) -> None:
    run = money_story().write(tmp_path / "run")
    said = statement(run)
    said["predicate"]["synthetic"] = ["sham"]
    said["predicate"]["selection"] = {"limit": 2}
    lines = render_text(checked(canonical(seal(canonical(said), Signer())), None, None)).splitlines()
    assert lines[-1] == "VERIFIED, PART, NOT COMPLETE (10 of 12), SYNTHETIC, but not who signed"
    assert lines[-2] == "attestation of a run, without the run"


def test_a_run_that_cannot_be_read(run: Path, tmp_path: Path) -> None:
    data = canonical(seal(canonical(statement(run)), Signer()))
    for held in (tmp_path / "nothing", tmp_path):
        report = checked(data, held)
        assert report.exit_status == 1 and "attestation.run" not in report.failed()


def test_on_the_command_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.dsse.json"
    file.write_bytes(canonical(seal(canonical(statement(run)), Signer())))
    assert main([str(file), str(run), "--key", Signer().vkey]) == 0
    # whatever stands between the two
    assert main([str(file), "--key", Signer().vkey, str(run)]) == 0
    assert main(["--key", Signer().vkey, str(file), "--json", str(run)]) == 0
    assert "holds, " in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([str(run), str(run)])
    assert ended.value.code == 2


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
def test_an_envelope_of_another_kind_is_told_to_be_none() -> None:
    bundle = json.loads((CASES / "a.dsse.staging-rekor-v2.txt.sigstore.json").read_bytes())
    envelope = bundle["dsseEnvelope"]
    assert base64.b64decode(envelope["payload"])
    for data in (json.dumps(bundle).encode(), json.dumps(envelope).encode()):
        assert checked(data, None).failed() == ["attestation.form"]


@given(st.binary(max_size=300))
def test_any_bytes_are_a_finding(tail: bytes) -> None:
    assert checked(b"{" + tail, None).failed() == ["attestation.form"]
