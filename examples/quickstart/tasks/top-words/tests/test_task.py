"""top-words counts words by its description, and refuses wrong command lines."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import WORKDIR, equal, main, run

PROGRAM = WORKDIR / "top-words"
TEXT = "b B a c, a-b (C) zebra\n"


def good(*words, stdin=""):
    status, stdout, stderr = run(PROGRAM, *words, stdin=stdin)
    assert status == 0, f"exit status {status}: {stderr[-500:]}"
    return stdout.splitlines()


def words_are_counted_from_standard_input():
    equal(good("2", stdin="one two two three three three"), ["3 three", "2 two"], "the two most frequent")


def case_does_not_matter_and_ties_are_alphabetical():
    equal(good("9", stdin=TEXT), ["3 b", "2 a", "2 c", "1 zebra"], "all words")


def only_n_words_are_printed():
    equal(good("1", stdin=TEXT), ["3 b"], "one word")


def everything_else_divides_words():
    equal(good("9", stdin="it's 4ever\tnaïve_x"), ["1 ever", "1 it", "1 na", "1 s", "1 ve", "1 x"], "runs of letters")


def a_file_and_a_dash_are_read():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "name with space.txt")
        file.write_text("x y y")
        equal(good("2", file), ["2 y", "1 x"], "from a file")
    equal(good("2", "-", stdin="q"), ["1 q"], "from standard input by a dash")


def an_empty_text_prints_nothing():
    equal(good("3", stdin=""), [], "no words")


def wrong_command_lines_are_refused():
    for words in ([], ["0"], ["-1"], ["many"], ["1.5"], ["1", "a", "b"]):
        status, stdout, stderr = run(PROGRAM, *words)
        equal((status, stdout), (2, ""), f"status and output for {words}")
        assert stderr.startswith("usage:"), f"standard error for {words} is {stderr!r}"


def a_file_that_is_not_there_is_an_error():
    status, stdout, stderr = run(PROGRAM, "1", "/nowhere/file")
    equal((status, stdout, bool(stderr)), (1, "", True), "status, output and whether there is a message")


main(
    words_are_counted_from_standard_input,
    case_does_not_matter_and_ties_are_alphabetical,
    only_n_words_are_printed,
    everything_else_divides_words,
    a_file_and_a_dash_are_read,
    an_empty_text_prints_nothing,
    wrong_command_lines_are_refused,
    a_file_that_is_not_there_is_an_error,
)
