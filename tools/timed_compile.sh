#!/usr/bin/env bash
# Runs a compiler and notes its processor seconds beside the object, for
# tools/build_times.py. Processor time, so that a busy machine does not count.
object= before=
for word in "$@"; do
  [ "$before" = -o ] && object=$word
  before=$word
done
[ -n "$object" ] || exec "$@"
TIMEFORMAT='%U %S'
{ time "$@" 2>&3; } 3>&2 2> "$object.time"
