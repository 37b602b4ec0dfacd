"""The contract of engines, as checks that every one of them passes.

Rules: an engine is seen through its protocol alone. A feature that ``info``
claims is tested, one that it doesn't claim has to be refused. Nothing here
needs pytest. With it::

    class TestMyEngine(EngineContract):
        @pytest.fixture
        def engine(self):
            with contextlib.closing(MyEngine(...)) as engine:
                yield engine

Without it: ``for check in CHECKS.values(): check(engine)``; a broken rule is an
AssertionError that says which. The last check closes the engine, so that one
engine can serve them all. Equal requests are expected to give equal tokens,
alone or beside others: of a model in narrow types, that may ask too much where
two tokens are nearly as likely. The more the model varies with its prompt, the
more the checks see; 300 tokens of context are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from . import company, features, steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..engine import Engine

    Check = Callable[[Engine], None]

CHECKS: Final[dict[str, Check]] = {
    check.__name__.removeprefix("check_"): check
    for check in (
        steps.check_stop_ids, steps.check_steps, steps.check_max_tokens, steps.check_context,
        steps.check_pieces, steps.check_parsing,
        features.check_refusals, features.check_narrow_filters, features.check_heat,
        features.check_penalties, features.check_stop_strings, features.check_logprobs,
        features.check_reasoning_budget, features.check_grammar,
        company.check_determinism, company.check_cancelling, company.check_batches,
        company.check_joining_and_leaving, company.check_prefixes, company.check_closing,
    )
}  # fmt: skip
"""All of them by name, the one that closes the engine last."""


class EngineContract:
    """One ``test_`` method for each check; a subclass has a pytest fixture ``engine``."""


def _as_test(check: Check) -> Callable[[Any, Engine], None]:
    def test(self: object, engine: Engine) -> None:
        check(engine)

    test.__doc__ = check.__doc__
    return test


for _name, _check in CHECKS.items():
    setattr(EngineContract, f"test_{_name}", _as_test(_check))
