"""How a check says that a package it holds us against is not installed.

`./dev test --peers[=light]` sets HEARTH_PEERS to what it installed: a package
that must be there then fails the check instead."""
import os
import sys

# What tools/peers.txt has and tools/peers_light.txt has not.
HEAVY = {"torch", "peft"}


def skip(error):
    """For `except ImportError as error`: names what is missing and ends as
    skipped (77). A package that is there and broken is no reason to skip."""
    package = (error.name or "").split(".")[0]
    heavy = package in HEAVY
    installed = os.environ.get("HEARTH_PEERS", "")
    if not isinstance(error, ModuleNotFoundError) or installed == "full" or (installed and not heavy):
        raise error
    which = "--peers" if heavy else "--peers=light"
    print(f"SKIP: Python's {package} is not installed: ./dev test {which} does it")
    sys.exit(77)


def skip_without(what):
    """The same for what is no Python package; all of it is in the light set."""
    if os.environ.get("HEARTH_PEERS"):
        raise SystemExit(f"FAIL: {what} must be here after ./dev test --peers")
    print(f"SKIP: no {what}: ./dev test --peers=light fetches it")
    sys.exit(77)
