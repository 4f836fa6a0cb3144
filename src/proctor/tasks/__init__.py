"""Tasks: reading folders and their digests, and deciding what a task needs of a sandbox.

`harbor.read_task` reads, `discover.discover` finds, `selection.select` chooses, `plan.obstacles` and
`plan.environment_plan` decide. Nothing here acts.
"""
