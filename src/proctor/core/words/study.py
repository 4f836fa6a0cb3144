"""What is said of the reasons about the command line and the study."""

from __future__ import annotations

from proctor.core.families import Family, Words

UNKNOWN_WAIVER = Words(
    Family.COMMAND,
    "--waive names nothing that can be waived.",
    "Name one of the waivable reasons of docs/guards.md.",
)
WOULD_OVERWRITE = Words(
    Family.COMMAND,
    "Something stands in the place where files were to be made, and nothing is overwritten.",
    "Name a folder that does not exist yet, or an empty one.",
)
OUTPUT_UNWRITABLE = Words(
    Family.COMMAND,
    "What was to be printed could not be written.",
    "See that what standard output leads to takes it: a disk may be full. What was done before stays done.",
)
PORT_UNAVAILABLE = Words(
    Family.COMMAND,
    "The port cannot be listened on.",
    "Name another one with --port, or none: a free one is taken then.",
)
UNKNOWN_KEY = Words(
    Family.STUDY, "A key is not part of the schema.", "Correct the key to the closest known one, or remove it."
)
MISSING_KEY = Words(Family.STUDY, "A key that is needed is absent.", "Add the key.")
WRONG_TYPE = Words(
    Family.STUDY, "A value has another type than the schema wants.", "Write it in the form that the message names."
)
INVALID_VALUE = Words(
    Family.STUDY, "A value is outside of what the schema allows.", "Write it as the message says that it must be."
)
MONEY_INVALID = Words(
    Family.STUDY, "An amount of money is not an exact decimal string.", 'Write money as a string such as "145.00".'
)
NOT_IN_THIS_VERSION = Words(
    Family.STUDY,
    "The schema has this, and this version of proctor cannot do it yet.",
    "Remove it, or use a version that has it.",
)
STUDY_NOT_FOUND = Words(
    Family.STUDY, "There is no study file there.", "Name a study.toml, or the folder that holds one."
)
STUDY_UNREADABLE = Words(
    Family.STUDY, "The study file could not be read as TOML.", "Mend the line that the message names."
)
UNKNOWN_NAME = Words(
    Family.STUDY,
    "A name refers to an arm, stage, model or task that the study does not define.",
    "Use a defined name, or define it.",
)
DUPLICATE_NAME = Words(Family.STUDY, "One name is used for two things.", "Give each its own name.")
NOTHING_SELECTED = Words(
    Family.STUDY,
    "The selection leaves nothing to run.",
    "Widen include, ids, where or slice, or the options given.",
)
FILE_MISSING = Words(
    Family.STUDY, "A file or folder that the study names is not there.", "Create it, or correct the path."
)
FILE_UNREADABLE = Words(Family.STUDY, "A file that is needed cannot be read.", "Mend its permissions or content.")
