"""Constrained decoding: which tokens may come next, so that a turn is what was asked.

Rules: one implementation for every engine that samples by
:mod:`~atem.runtime.sampling`. Nothing is masked where nothing is asked: inside
reasoning, and in bodies that are the model's own. llguidance does the work, and
is loaded when the first grammar comes; without it no engine claims the feature.
Nothing is imported here: what only compiles does without NumPy.
"""
