"""The inspector: a page that shows what the parser makes of a turn, token by token.

Rules: the page is files that a browser takes as they are, and nothing in them
comes from elsewhere. It reads no wire text itself: what it shows is a trace
(:mod:`atem.trace`). ``page`` hands out the files, ``live`` keeps what this
server's model wrote last. No web framework is imported here, so that the
command line can write the page into a file.
"""
