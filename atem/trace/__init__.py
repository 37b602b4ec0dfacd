"""A turn as the parser sees it, as data: for people who look on, and for files.

Rules: the parser decides, this package tells. ``records`` are events and turns
as JSON, ``kinds`` what a character of a turn is, ``pieces`` how a text is cut,
``tracer`` what each piece brings. Who shows it is the command line's and the
server's business.
"""
