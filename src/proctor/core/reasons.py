"""The one vocabulary of "no": why something was refused, ended early, failed or stayed ungraded.

`docs/reasons.md` and `proctor explain` are made from this enum; there is no second list.
"""

from __future__ import annotations

from enum import Enum

from proctor.core.families import Family
from proctor.core.words import ends, money, runs, study, tasks, worlds


class Reason(Enum):
    """Every reason; `id` is the stable name in records."""

    # the command line and the study
    UNKNOWN_WAIVER = study.UNKNOWN_WAIVER
    WOULD_OVERWRITE = study.WOULD_OVERWRITE
    OUTPUT_UNWRITABLE = study.OUTPUT_UNWRITABLE
    PORT_UNAVAILABLE = study.PORT_UNAVAILABLE
    UNKNOWN_KEY = study.UNKNOWN_KEY
    MISSING_KEY = study.MISSING_KEY
    WRONG_TYPE = study.WRONG_TYPE
    INVALID_VALUE = study.INVALID_VALUE
    MONEY_INVALID = study.MONEY_INVALID
    NOT_IN_THIS_VERSION = study.NOT_IN_THIS_VERSION
    STUDY_NOT_FOUND = study.STUDY_NOT_FOUND
    STUDY_UNREADABLE = study.STUDY_UNREADABLE
    UNKNOWN_NAME = study.UNKNOWN_NAME
    DUPLICATE_NAME = study.DUPLICATE_NAME
    NOTHING_SELECTED = study.NOTHING_SELECTED
    FILE_MISSING = study.FILE_MISSING
    FILE_UNREADABLE = study.FILE_UNREADABLE
    # tasks
    TASK_NOT_FOUND = tasks.TASK_NOT_FOUND
    TASK_UNREADABLE = tasks.TASK_UNREADABLE
    TASK_FORMAT_LATER = tasks.TASK_FORMAT_LATER
    TASK_NOT_GRADABLE = tasks.TASK_NOT_GRADABLE
    TASK_NO_SOLUTION = tasks.TASK_NO_SOLUTION
    TASK_SOLUTION_FAILS = tasks.TASK_SOLUTION_FAILS
    TASK_NOP_PASSES = tasks.TASK_NOP_PASSES
    TASK_CHECK_UNGRADED = tasks.TASK_CHECK_UNGRADED
    TASK_NEEDS_DOCKER = tasks.TASK_NEEDS_DOCKER
    TASK_NEEDS_COMPOSE = tasks.TASK_NEEDS_COMPOSE
    TASK_NEEDS_GPU = tasks.TASK_NEEDS_GPU
    TASK_OS_UNSUPPORTED = tasks.TASK_OS_UNSUPPORTED
    TASK_ENV_MISSING = tasks.TASK_ENV_MISSING
    TASK_NEEDS_PACKAGES = tasks.TASK_NEEDS_PACKAGES
    TASK_NEEDS_ROOT = tasks.TASK_NEEDS_ROOT
    TASK_UNSAFE = tasks.TASK_UNSAFE
    TASK_DUPLICATE = tasks.TASK_DUPLICATE
    # sandbox
    SANDBOX_UNAVAILABLE = worlds.SANDBOX_UNAVAILABLE
    USER_NAMESPACES_FORBIDDEN = worlds.USER_NAMESPACES_FORBIDDEN
    BWRAP_MISSING = worlds.BWRAP_MISSING
    ROOTFS_INVALID = worlds.ROOTFS_INVALID
    LIMIT_UNENFORCEABLE = worlds.LIMIT_UNENFORCEABLE
    NETWORK_UNAVAILABLE = worlds.NETWORK_UNAVAILABLE
    SANDBOX_START_FAILED = worlds.SANDBOX_START_FAILED
    SANDBOX_LOST = worlds.SANDBOX_LOST
    WORLD_GONE = worlds.WORLD_GONE
    CAPTURE_FAILED = worlds.CAPTURE_FAILED
    PATH_UNSAFE = worlds.PATH_UNSAFE
    DOCKER_UNAVAILABLE = worlds.DOCKER_UNAVAILABLE
    IMAGE_MISSING = worlds.IMAGE_MISSING
    IMAGE_MOVED = worlds.IMAGE_MOVED
    IMAGE_BUILD_FAILED = worlds.IMAGE_BUILD_FAILED
    # agent
    UNKNOWN_AGENT = worlds.UNKNOWN_AGENT
    AGENT_OPTIONS_INVALID = worlds.AGENT_OPTIONS_INVALID
    AGENT_INVALID = worlds.AGENT_INVALID
    AGENT_START_FAILED = worlds.AGENT_START_FAILED
    BUNDLE_MISSING = worlds.BUNDLE_MISSING
    BUNDLE_CHANGED = worlds.BUNDLE_CHANGED
    BUNDLE_UNUSABLE = worlds.BUNDLE_UNUSABLE
    INSTALL_FAILED = worlds.INSTALL_FAILED
    RUNTIME_VERSION_ABSENT = worlds.RUNTIME_VERSION_ABSENT
    RUNTIME_SKEW = worlds.RUNTIME_SKEW
    # money
    BUDGET_ABSENT = money.BUDGET_ABSENT
    BUDGET_INCOMPLETE = money.BUDGET_INCOMPLETE
    BUDGET_INCONSISTENT = money.BUDGET_INCONSISTENT
    PRIOR_SPEND_UNCOUNTED = money.PRIOR_SPEND_UNCOUNTED
    PRICE_UNKNOWN = money.PRICE_UNKNOWN
    OUTPUT_UNBOUNDED = money.OUTPUT_UNBOUNDED
    SPEND_NOT_CONFIRMED = money.SPEND_NOT_CONFIRMED
    CEILING_REACHED = money.CEILING_REACHED
    CAP_REACHED = money.CAP_REACHED
    OVERRUN = money.OVERRUN
    LEASE_STALE = money.LEASE_STALE
    # models and their providers
    MODEL_NEEDED = money.MODEL_NEEDED
    MODEL_UNUSED = money.MODEL_UNUSED
    PROVIDER_UNKNOWN = money.PROVIDER_UNKNOWN
    KEY_MISSING = money.KEY_MISSING
    KEY_REJECTED = money.KEY_REJECTED
    QUOTA_EXHAUSTED = money.QUOTA_EXHAUSTED
    MODEL_NOT_FOUND = money.MODEL_NOT_FOUND
    PROVIDER_UNREACHABLE = money.PROVIDER_UNREACHABLE
    PROVIDER_TIMEOUT = money.PROVIDER_TIMEOUT
    RATE_LIMITED = money.RATE_LIMITED
    PROVIDER_FAILED = money.PROVIDER_FAILED
    REQUEST_REJECTED = money.REQUEST_REJECTED
    CONTEXT_EXCEEDED = money.CONTEXT_EXCEEDED
    REPLY_UNREADABLE = money.REPLY_UNREADABLE
    REPLY_TOO_LARGE = money.REPLY_TOO_LARGE
    MODEL_UNSUITABLE = money.MODEL_UNSUITABLE
    GATEWAY_NEEDED = money.GATEWAY_NEEDED
    ROUTE_UNKNOWN = money.ROUTE_UNKNOWN
    TOKEN_UNKNOWN = money.TOKEN_UNKNOWN
    MODEL_NOT_LISTED = money.MODEL_NOT_LISTED
    REQUEST_UNREADABLE = money.REQUEST_UNREADABLE
    REQUEST_TOO_LARGE = money.REQUEST_TOO_LARGE
    FEATURE_UNPRICED = money.FEATURE_UNPRICED
    OUTPUT_ABOVE_BOUND = money.OUTPUT_ABOVE_BOUND
    # question sets
    QUESTIONS_UNREADABLE = tasks.QUESTIONS_UNREADABLE
    QUESTION_INVALID = tasks.QUESTION_INVALID
    TOOL_INVALID = tasks.TOOL_INVALID
    AGENT_UNSUITABLE = tasks.AGENT_UNSUITABLE
    EXTRA_MISSING = tasks.EXTRA_MISSING
    BUILD_UNSUPPORTED = tasks.BUILD_UNSUPPORTED
    # provenance
    GIT_DIRTY = runs.GIT_DIRTY
    GIT_BROKEN = runs.GIT_BROKEN
    VERSION_UNSUPPORTED = runs.VERSION_UNSUPPORTED
    # run folder
    RUN_EXISTS = runs.RUN_EXISTS
    RUN_NOT_FOUND = runs.RUN_NOT_FOUND
    RUN_LOCKED = runs.RUN_LOCKED
    RUN_NOT_LIVE = runs.RUN_NOT_LIVE
    RUN_COMPLETE = runs.RUN_COMPLETE
    OUT_UNUSABLE = runs.OUT_UNUSABLE
    DESIGN_CHANGED = runs.DESIGN_CHANGED
    TASK_CHANGED = runs.TASK_CHANGED
    PREPARED_ONLY = runs.PREPARED_ONLY
    STAGE_DEADLINE = runs.STAGE_DEADLINE
    DISK_FULL = runs.DISK_FULL
    # evidence
    EVIDENCE_UNREADABLE = runs.EVIDENCE_UNREADABLE
    EVIDENCE_DAMAGED = runs.EVIDENCE_DAMAGED
    JSON_INVALID = runs.JSON_INVALID
    ENTRY_TOO_LARGE = runs.ENTRY_TOO_LARGE
    FORMAT_UNKNOWN = runs.FORMAT_UNKNOWN
    WRITE_FAILED = runs.WRITE_FAILED
    KEY_UNREADABLE = runs.KEY_UNREADABLE
    # how an attempt ended early: facts beside a grade
    AGENT_TIMEOUT = ends.AGENT_TIMEOUT
    AGENT_ERROR = ends.AGENT_ERROR
    AGENT_KILLED = ends.AGENT_KILLED
    AGENT_OUTPUT_CAPPED = ends.AGENT_OUTPUT_CAPPED
    INTERRUPTED = ends.INTERRUPTED
    LOST = ends.LOST
    INTERNAL_ERROR = ends.INTERNAL_ERROR
    STEP_LIMIT = ends.STEP_LIMIT
    TOKEN_LIMIT = ends.TOKEN_LIMIT
    IDLE_TIMEOUT = ends.IDLE_TIMEOUT
    # grades
    SCORER_FAILED = ends.SCORER_FAILED
    SCORER_TIMEOUT = ends.SCORER_TIMEOUT
    VERIFIER_TIMEOUT = ends.VERIFIER_TIMEOUT
    VERIFIER_KILLED = ends.VERIFIER_KILLED
    VERIFIER_CRASHED = ends.VERIFIER_CRASHED
    REWARD_MISSING = ends.REWARD_MISSING
    REWARD_UNREADABLE = ends.REWARD_UNREADABLE
    REWARD_TOO_LARGE = ends.REWARD_TOO_LARGE
    REWARD_KEY_MISSING = ends.REWARD_KEY_MISSING
    VERDICTS_DISAGREE = ends.VERDICTS_DISAGREE
    NO_TESTS_RAN = ends.NO_TESTS_RAN
    DUPLICATE_TESTS = ends.DUPLICATE_TESTS
    REPORT_UNREADABLE = ends.REPORT_UNREADABLE
    REPORT_UNKNOWN = ends.REPORT_UNKNOWN
    REPORT_MISSING = ends.REPORT_MISSING
    NOT_GRADED = ends.NOT_GRADED
    NOT_RUN = ends.NOT_RUN
    BELOW_THRESHOLD = ends.BELOW_THRESHOLD
    WRONG_ANSWER = ends.WRONG_ANSWER
    NO_ANSWER = ends.NO_ANSWER
    TESTS_FAILED = ends.TESTS_FAILED

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
