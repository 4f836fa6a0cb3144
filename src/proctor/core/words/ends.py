"""What is said of the reasons about how an attempt ended early, and grades."""

from __future__ import annotations

from proctor.core.families import Family, Words

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
NOT_RUN = Words(
    Family.UNGRADED,
    "The trial has no final: it was not begun, or no attempt of it came to its end.",
    "`proctor resume` runs it, as far as the run's money reaches.",
)
BELOW_THRESHOLD = Words(Family.FAIL, "The reward does not reach what counts as solved.", "Nothing: this is a result.")
WRONG_ANSWER = Words(Family.FAIL, "The answer is not the target.", "Nothing: this is a result.")
NO_ANSWER = Words(Family.FAIL, "The agent gave no answer.", "Nothing: this is a result.")
TESTS_FAILED = Words(
    Family.FAIL, "The grade comes from the tests, and not all of them passed.", "Nothing: this is a result."
)

IDLE_TIMEOUT = Words(
    Family.ATTEMPT, "The agent did nothing for too long.", "Raise idle_timeout, if that was not wanted."
)
