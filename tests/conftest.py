"""Settings that every test shares.

Rules: fixtures and profiles only; what a folder's tests share lives in that folder.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# Read when torch or NumPy's BLAS is first imported. The models are tiny: a second thread costs more
# in waiting than it computes, and on a busy machine a hundred times more.
for _library in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_library, "1")

# A suite that was started in the background ignores interrupts, and so would every process that it
# starts, those that have to end with one included.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: a shared machine may stall anywhere. In CI the same examples come each time, so that
# a red run is the fault of the change; `HYPOTHESIS_PROFILE=thorough` looks for new ones.
settings.register_profile("default", max_examples=100, deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=3000)

settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default")
)
