"""Puts this folder on the path of the tests below it: builder, stories and plants are theirs too."""
