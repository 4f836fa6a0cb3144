"""orders.json holds the orders of the export, by the rules of the instruction."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import WORKDIR, equal, main

# The rows are written out: what the agent left in orders.csv decides nothing.
WANTED = [
    {"id": 2, "date": "2025-01-01", "customer": "O'Neill, Sons & Co.", "items": 12, "total": "12.06"},
    {"id": 5, "date": "2025-06-30", "customer": "李 雷", "items": 1, "total": "2.68"},
    {"id": 6, "date": "2025-10-05", "customer": "Ada Byron", "items": 250, "total": "7.63"},
    {"id": 9, "date": "2025-02-28", "customer": "Jürgen Groß", "items": 1, "total": "0.13"},
    {"id": 10, "date": "2025-12-03", "customer": "Ada Byron", "items": 3, "total": "59.97"},
    {"id": 31, "date": "2025-07-15", "customer": "Semi; Colon Ltd", "items": 2, "total": "0.01"},
]


def orders():
    return json.loads((WORKDIR / "orders.json").read_text(encoding="utf-8"))


def column(name):
    return [order[name] for order in orders()]


def is_an_array_of_objects_with_the_five_keys():
    equal([sorted(order) for order in orders()], [sorted(order) for order in WANTED], "keys")


def numbers_are_numbers():
    assert all(type(order[key]) is int for order in orders() for key in ("id", "items")), "id and items are integers"


def cancelled_orders_are_left_out_and_ids_sorted():
    equal(column("id"), [order["id"] for order in WANTED], "ids")


def days_are_written_by_the_house_rule():
    equal(column("date"), [order["date"] for order in WANTED], "dates")


def names_are_kept_without_the_white_space_around():
    equal(column("customer"), [order["customer"] for order in WANTED], "customers")


def totals_are_exact_with_half_a_cent_rounded_up():
    equal(column("total"), [order["total"] for order in WANTED], "totals")


def items_are_the_quantities():
    equal(column("items"), [order["items"] for order in WANTED], "items")


main(
    is_an_array_of_objects_with_the_five_keys,
    numbers_are_numbers,
    cancelled_orders_are_left_out_and_ids_sorted,
    days_are_written_by_the_house_rule,
    names_are_kept_without_the_white_space_around,
    totals_are_exact_with_half_a_cent_rounded_up,
    items_are_the_quantities,
)
