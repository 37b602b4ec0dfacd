"""Doubles and checks for people who build on atem: what they test with, and what engines must pass.

``scripted`` is an engine that answers what it is told, ``contract`` what every
engine must pass, ``driving`` how a test asks one, ``tiny`` checkpoints of the
real architecture that fit a test.

Rules: part of the product. Needs what the ``engine`` extra installs, and
nothing of pytest.
"""
