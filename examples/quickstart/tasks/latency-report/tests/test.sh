#!/bin/sh
# -I: neither the environment nor the working directory that the agent left decides what is imported.
export PATH=/usr/local/bin:/usr/bin:/bin
exec python3 -I -B /tests/test_task.py
