"""Prints the spans in which a room is taken, from bookings on standard input."""

import sys


def minutes(text):
    hours, minute = text.split(":")
    return int(hours) * 60 + int(minute)


def clock(value):
    return f"{value // 60:02d}:{value % 60:02d}"


def merge(bookings):
    spans = []
    for start, end in sorted(bookings):
        if spans and start < spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([start, end])
    return spans


def main():
    bookings = [tuple(minutes(part) for part in line.split()) for line in sys.stdin if line.strip()]
    for start, end in merge(bookings):
        print(clock(start), clock(end))


if __name__ == "__main__":
    main()
