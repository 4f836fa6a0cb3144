"""archive.sh copies log files whatever the names of files and folders are."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import WORKDIR, equal, main, run


def archive(names, source="source", target="target"):
    """Copies a folder with files of these names; returns what was printed, and {name: content} of the target."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / source).mkdir()
        for name in names:
            (here / source / name).write_text(f"content of {name}")
        status, stdout, stderr = run("sh", WORKDIR / "archive.sh", here / source, here / target, cwd=here)
        assert status == 0, f"exit status {status}: {stderr[-500:]}"
        copied = {file.name: file.read_text() for file in (here / target).iterdir()}
        kept = sorted(file.name for file in (here / source).iterdir())
    equal(kept, sorted(names), "files in the source folder afterwards")
    return stdout.strip(), copied


def copies(*names, **folders):
    equal(archive(names, **folders), (str(len(names)), {name: f"content of {name}" for name in names}), "copied")


def plain_names_are_copied():
    copies("a.log", "b.log")


def only_logs_are_copied():
    equal(archive(["a.log", "a.txt", "log"]), ("1", {"a.log": "content of a.log"}), "copied")


def names_with_spaces_are_copied():
    copies("nightly job.log", " leading.log", "two  spaces.log")


def names_with_pattern_characters_are_copied():
    copies("[ab].log", "a.log", "what?.log", "*.log")


def names_with_a_leading_dash_are_copied():
    copies("-f.log", "--help.log")


def names_with_quotes_and_dollars_are_copied():
    copies("it's.log", 'say "x".log', "$HOME.log", "back\\slash.log")


def folders_with_spaces_work():
    copies("a.log", source="in box", target="out box")


def folders_with_pattern_characters_work():
    copies("a.log", source="in[1]", target="out *")


def a_folder_without_logs_counts_zero():
    equal(archive(["a.txt"]), ("0", {}), "copied")


main(
    plain_names_are_copied,
    only_logs_are_copied,
    names_with_spaces_are_copied,
    names_with_pattern_characters_are_copied,
    names_with_a_leading_dash_are_copied,
    names_with_quotes_and_dollars_are_copied,
    folders_with_spaces_work,
    folders_with_pattern_characters_work,
    a_folder_without_logs_counts_zero,
)
