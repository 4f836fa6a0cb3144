"""export_orders.py FILE.csv: writes FILE.json beside it, by the conventions of the house."""

import csv
import json
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

CENT = Decimal("0.01")


def exported(row):
    """One order as the house writes it."""
    day, month, year = (int(part) for part in row["date"].split("."))
    total = Decimal(row["quantity"]) * Decimal(row["unit_price"])
    return {
        "id": int(row["id"]),
        "date": f"{year:04d}-{month:02d}-{day:02d}",
        "customer": row["customer"].strip(),
        "items": int(row["quantity"]),
        "total": str(total.quantize(CENT, ROUND_HALF_UP)),
    }


def main(source):
    """Exports all orders but the cancelled, by number."""
    with source.open(encoding="utf-8", newline="") as file:
        orders = [exported(row) for row in csv.DictReader(file, delimiter=";") if row["status"] != "cancelled"]
    orders.sort(key=lambda order: order["id"])
    target = source.with_suffix(".json")
    target.write_text(json.dumps(orders, ensure_ascii=False, indent=1), encoding="utf-8")
    print(f"{target}: {len(orders)} orders")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
