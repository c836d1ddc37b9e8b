# Stages with their times, and the one way to fail.
HEARTH_NO_INSTALL=${HEARTH_NO_INSTALL:-}

fail() { printf 'dev: %s\n' "$1" >&2; exit "${2:-1}"; }
have() { command -v "$1" > /dev/null 2>&1; }

# stage TITLE COMMAND...: runs it and says how long it took. What it prints goes
# to a log that is shown only when it fails, unless STAGE_SHOW is set.
stage() {
  local title=$1 start=$SECONDS log
  shift
  mkdir -p build
  log=build/stage.log
  printf '== %s\n' "$title"
  if [ -n "${STAGE_SHOW:-}" ]; then
    "$@" || fail "stage '$title' failed"
  elif ! "$@" > "$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "stage '$title' failed; the whole log is in $log"
  fi
  printf '   %s: %s s\n' "$title" "$((SECONDS - start))"
}

# Says what is missing instead of installing it.
missing() {
  [ -z "$HEARTH_NO_INSTALL" ] && return 1
  printf 'missing: %s\n' "$1"
  HEARTH_MISSING=1
}

stop_if_missing() {
  [ -z "${HEARTH_MISSING:-}" ] || fail "run it again without --no-install to set these up"
}
