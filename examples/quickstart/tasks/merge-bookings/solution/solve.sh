#!/bin/sh
set -eu
sed -i 's/start < spans\[-1\]\[1\]/start <= spans[-1][1]/' /app/bookings.py
