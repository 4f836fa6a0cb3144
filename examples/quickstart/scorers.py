"""Scorers of this study's question set: each is given an answer and its row, and says how right the answer is."""


def same_word(answer, row):
    """Whether the answer is the target, in upper or lower case."""
    return answer.strip().casefold() == row["target"].casefold()
