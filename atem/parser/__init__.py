"""The parser: tokens in, events out (docs/parser.md). Import names from ``atem``."""
