"""bookings.py prints merged spans for bookings that touch, overlap, repeat or lie apart."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import equal, main, run


def spans(*bookings):
    status, stdout, stderr = run("python3", "bookings.py", stdin="".join(f"{line}\n" for line in bookings))
    assert status == 0, f"exit status {status}: {stderr[-500:]}"
    return stdout.splitlines()


def touching_bookings_are_one_span():
    equal(spans("09:00 10:00", "10:00 11:30"), ["09:00 11:30"], "two that touch")


def a_chain_of_touching_bookings_is_one_span():
    equal(spans("11:00 12:00", "09:00 10:00", "10:00 11:00"), ["09:00 12:00"], "three that touch, out of order")


def overlapping_bookings_are_one_span():
    equal(spans("09:00 10:30", "10:00 11:00"), ["09:00 11:00"], "two that overlap")


def a_booking_inside_another_does_not_cut_it():
    equal(spans("09:00 12:00", "09:30 10:00"), ["09:00 12:00"], "one inside another")


def bookings_apart_stay_apart():
    equal(spans("13:00 14:00", "09:00 10:00"), ["09:00 10:00", "13:00 14:00"], "two apart")


def one_free_minute_is_kept():
    equal(spans("09:00 10:00", "10:01 11:00"), ["09:00 10:00", "10:01 11:00"], "a minute between")


def no_bookings_print_nothing():
    equal(spans(), [], "no bookings")


main(
    touching_bookings_are_one_span,
    a_chain_of_touching_bookings_is_one_span,
    overlapping_bookings_are_one_span,
    a_booking_inside_another_does_not_cut_it,
    bookings_apart_stay_apart,
    one_free_minute_is_kept,
    no_bookings_print_nothing,
)
