"""Fetch the released parsers that the benchmark compares with.

Rules: packages come from the index that pip is configured for, into a folder
outside the tree ($ATEM_PEERS_ROOT, by default in the temporary directory);
nothing of them is copied here. Only the Python files of a parser's package are
unpacked, and none of its install code runs. About 0.5 GB of downloads, most of
it the vLLM wheel, which is deleted after unpacking.

Run as a script: ``python tests/bench/peers.py``. What is there already stays.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(os.environ.get("ATEM_PEERS_ROOT") or Path(tempfile.gettempdir()) / "atem-peers")
# Libraries are compiled for one interpreter, so each has its own folder.
LIBRARIES = ROOT / f"libraries-{sys.implementation.cache_tag}"
PACKAGES = ROOT / "packages"


class Peer(NamedTuple):
    """One release on the index, and the files of its wheel that are unpacked."""

    distribution: str
    version: str
    files: str

    @property
    def folder(self) -> Path:
        """Where it is unpacked."""
        return PACKAGES / f"{self.distribution}-{self.version}"


PEERS = {
    peer.distribution: peer
    for peer in (
        Peer("vllm", "0.33.0", "vllm/*.py"),
        Peer("sglang", "0.5.23", "sglang/*.py"),
        Peer("freetoken", "0.2.1", "freetoken/*.py"),
        Peer("rapid-mlx", "0.16.10", "*.py"),
        Peer("mlx-vlm", "0.7.10", "*.py"),
    )
}

# What the parsers' modules import, without the engines around them.
NEEDED = (
    "pydantic openai openai-harmony==0.0.8 regex transformers numpy orjson partial-json-parser "
    "msgspec fastapi prometheus_client cachetools cloudpickle psutil pillow requests aiohttp "
    "jsonschema"
).split()


def pip(*arguments: str) -> None:
    """Run pip, which takes its own configuration into account."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    subprocess.run(command, check=True)


def install_libraries() -> None:
    """Install what the parsers need into a folder of its own, never into the environment."""
    if LIBRARIES.exists():
        return
    part = LIBRARIES.with_name(LIBRARIES.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    pip("install", "--target", str(part), *NEEDED)
    part.rename(LIBRARIES)


def unpack(peer: Peer) -> None:
    """Download a peer's wheel and unpack its Python files."""
    if peer.folder.exists():
        return
    part = peer.folder.with_name(peer.folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=ROOT) as scratch:
        pip("download", "--no-deps", "--dest", scratch, f"{peer.distribution}=={peer.version}")
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            wanted = [name for name in archive.namelist() if fnmatch.fnmatch(name, peer.files)]
            archive.extractall(part, wanted)
    part.rename(peer.folder)


def main() -> int:
    """Fetch all; 1 if any could not be fetched, after trying the others."""
    PACKAGES.mkdir(parents=True, exist_ok=True)
    install_libraries()
    failed = []
    for peer in PEERS.values():
        try:
            unpack(peer)
        except (subprocess.CalledProcessError, ValueError) as error:
            failed.append(peer.distribution)
            print(f"{peer.distribution} {peer.version}: {error}", file=sys.stderr)
        else:
            print(f"{peer.distribution} {peer.version}: {peer.folder}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
