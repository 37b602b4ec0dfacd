"""atem-serve as a deployment of Ray Serve; docs/scale.md says where that pays.

    pip install 'ray[serve]' && serve run --app-dir examples/serve ray_serve:app

Settings come from the environment as atem-serve reads it: ATEM_SERVE_ENGINE, ATEM_SERVE_STORE, ...
Replicas need a store that they share, and a key (ATEM_SERVE_API_KEY) where Ray listens to others.
"""

import os

from ray import serve
from starlette.applications import Starlette

from atem.cli.serve.engines import open_engine, sampling_of
from atem.server.app import create_app
from atem.server.settings import read_settings


def application() -> Starlette:
    """What one replica serves; Ray calls it in the replica's own process."""
    settings = read_settings({}, os.environ)
    return create_app(open_engine(settings), settings, sampling=sampling_of(settings))


@serve.deployment(num_replicas=2, max_ongoing_requests=64, graceful_shutdown_timeout_s=60)
@serve.ingress(application)
class Atem:
    """A replica. It has no method of its own: the application answers everything."""


app = Atem.bind()
