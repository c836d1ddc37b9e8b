#!/bin/sh
# Runs a script with the Python that has the peers' packages, if it was set up.
peers=$(dirname "$0")/../.deps/peers/bin/python3
[ -x "$peers" ] || peers=python3
exec "$peers" "$@"
