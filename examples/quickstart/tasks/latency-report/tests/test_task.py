"""report.txt has the right line for each path, in the right order."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import WORKDIR, equal, main

# The rows are written out: what the agent left in access.log decides nothing.
WANTED = [
    ["/api/orders", "33", "3", "79", "337"],
    ["/api/login", "21", "1", "73", "248"],
    ["/", "40", "0", "6", "54"],
    ["/static/app.js", "20", "0", "3", "20"],
    ["/health", "1", "0", "0", "0"],
]


def lines():
    return [line.split(" ") for line in (WORKDIR / "report.txt").read_text(encoding="utf-8").splitlines()]


def column(number):
    return {line[0]: line[number] for line in lines()[:-1]}


def wanted(number):
    return {line[0]: line[number] for line in WANTED}


def paths_are_in_order():
    equal([line[0] for line in lines()[:-1]], [line[0] for line in WANTED], "paths")


def requests_are_counted():
    equal(column(1), wanted(1), "requests")


def errors_are_counted():
    equal(column(2), wanted(2), "errors")


def medians_are_nearest_ranks():
    equal(column(3), wanted(3), "medians")


def high_percentiles_are_nearest_ranks():
    equal(column(4), wanted(4), "95th percentiles")


def broken_lines_are_counted_last():
    equal(lines()[-1], ["broken", "5"], "last line")


def lines_have_nothing_else():
    equal(lines()[:-1], WANTED, "report")


main(
    paths_are_in_order,
    requests_are_counted,
    errors_are_counted,
    medians_are_nearest_ranks,
    high_percentiles_are_nearest_ranks,
    broken_lines_are_counted_last,
    lines_have_nothing_else,
)
