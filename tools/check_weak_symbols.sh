#!/bin/sh
# Fails when an object compiled for one instruction set exports a weak symbol:
# the linker may hand that copy to code that runs on every machine.
for object in "$@"; do
  weak=$(nm -C "$object" | grep ' [WVu] ' | grep -v ' _*DW\.ref')
  [ -n "$weak" ] && printf '%s exports weak symbols:\n%s\n' "$object" "$weak" && exit 1
done
echo "$# objects, no weak symbol"
