"""One taught model for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@pytest.fixture(scope="session")
def weights() -> dict[str, NDArray[np.float32]]:
    """Canonical weights of a model that has learnt the probe's text."""
    from tests.runtime.load.taught import taught

    return taught()
