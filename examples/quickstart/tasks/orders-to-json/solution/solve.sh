#!/bin/sh
set -eu
python3 - <<'PYTHON'
import csv
import json
from decimal import ROUND_HALF_UP, Decimal

orders = []
with open("/app/orders.csv", encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file, delimiter=";"):
        if row["status"] == "cancelled":
            continue
        day, month, year = row["date"].split(".")
        total = Decimal(row["quantity"]) * Decimal(row["unit_price"])
        orders.append(
            {
                "id": int(row["id"]),
                "date": f"{int(year):04d}-{int(month):02d}-{int(day):02d}",
                "customer": row["customer"].strip(),
                "items": int(row["quantity"]),
                "total": str(total.quantize(Decimal("0.01"), ROUND_HALF_UP)),
            }
        )
with open("/app/orders.json", "w", encoding="utf-8") as file:
    json.dump(sorted(orders, key=lambda order: order["id"]), file, ensure_ascii=False, indent=1)
PYTHON
