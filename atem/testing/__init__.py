"""Doubles and checks for people who build on atem: what they test with, and what engines must pass.

Rules: part of the product. Needs numpy, safetensors and tokenizers where it
writes checkpoints, pytest where it is the contract suite, and nothing else.
"""
