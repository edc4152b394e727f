"""Judges a run that has no control node, when its last answer is in or its deadline is over."""
