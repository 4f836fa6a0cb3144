"""Scorers of question rows: `score.score` compares an answer with its row's target, one file for each rule. Pure."""
