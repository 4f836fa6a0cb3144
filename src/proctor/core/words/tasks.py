"""What is said of the reasons about tasks and question sets."""

from __future__ import annotations

from proctor.core.families import Family, Words

TASK_NOT_FOUND = Words(
    Family.TASK, "There is no task at that path.", "Name a folder that holds a task.toml or task.md."
)
TASK_UNREADABLE = Words(
    Family.TASK, "A task's files cannot be read as its format wants.", "Mend the file that the message names."
)
TASK_FORMAT_LATER = Words(
    Family.TASK,
    "This is a task in a format that this version does not run yet.",
    "Provide a task.toml or task.md, or use a version that has the format.",
)
TASK_NOT_GRADABLE = Words(
    Family.TASK, "The task has no tests, so nothing could be graded.", "Add the script that the message names."
)
TASK_NO_SOLUTION = Words(
    Family.TASK,
    "The task brings no solution, so it cannot be shown that it can be passed.",
    "Add the script that the message names; a run with another agent than oracle is possible without.",
)
TASK_SOLUTION_FAILS = Words(
    Family.TASK, "The task's own solution does not pass its tests.", "Mend the task before running agents on it."
)
TASK_NOP_PASSES = Words(
    Family.TASK, "Doing nothing passes the task's tests.", "Mend the tests before running agents on the task."
)
TASK_CHECK_UNGRADED = Words(
    Family.TASK, "A check of the task ended without a grade.", "Mend the task's tests, or its limits."
)
TASK_NEEDS_DOCKER = Words(
    Family.TASK,
    "The task's environment needs an image build that the namespace sandbox cannot do.",
    "Use the sandbox `docker`, or name a prepared root for its base in [sandbox.substitute].",
)
TASK_NEEDS_COMPOSE = Words(
    Family.TASK,
    "The task's compose file asks for more than its main service.",
    "Run its services in one container, or leave the task out: no sandbox of this version has several.",
)
TASK_NEEDS_GPU = Words(Family.TASK, "The task asks for GPUs.", "Run it where a sandbox has them.")
TASK_OS_UNSUPPORTED = Words(Family.TASK, "The task asks for another operating system than Linux.", "Run it elsewhere.")
TASK_ENV_MISSING = Words(
    Family.TASK,
    "The task's environment wants a variable of the host that is not set and has no default.",
    "Set the variable.",
)
TASK_NEEDS_PACKAGES = Words(
    Family.TASK,
    "The root that stands in for the task's image lacks packages that the image installs.",
    "Install them into the substitute root, or use the sandbox `docker`.",
)
TASK_NEEDS_ROOT = Words(
    Family.TASK,
    "The task needs several users or root powers inside, which an ordinary user's sandbox cannot give.",
    "Run as root, or use the sandbox `docker`.",
)
TASK_UNSAFE = Words(
    Family.TASK, "A task's files point outside of its folder, or are special files.", "Replace them by plain files."
)
TASK_DUPLICATE = Words(Family.TASK, "Two tasks have the same name.", "Rename one, or select only one of them.")
QUESTIONS_UNREADABLE = Words(
    Family.TASK, "The question set cannot be read.", "Correct the line that the message names."
)
QUESTION_INVALID = Words(Family.TASK, "A row of the question set is not what its scorer needs.", "Correct the row.")
TOOL_INVALID = Words(
    Family.STUDY, "A tool or scorer function cannot be found.", "Name it as `module:function`, beside the study."
)
AGENT_UNSUITABLE = Words(
    Family.AGENT, "The agent cannot do tasks of that kind.", "Use oracle, nop, toolloop, or one that can."
)
EXTRA_MISSING = Words(
    Family.COMMAND, "What was asked for needs an optional package.", "Install what the message names."
)

BUILD_UNSUPPORTED = Words(
    Family.TASK,
    "A Dockerfile needs a builder that this engine does not have.",
    "Use a newer engine, or write the line in a plainer way.",
)
