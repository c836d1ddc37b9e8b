# What ./dev does once things are built.
hearth() { "$(preset_dir release)/hearth" "$@"; }

cmd_quickstart() {
  local start=$SECONDS
  setup
  build_preset release --target hearth
  STAGE_SHOW=1 stage "this machine, measured" hearth doctor --measure
  quickstart_data || return 1
  quickstart_train || return 1
  printf 'quickstart took %s s\n' "$((SECONDS - start))"
}

# Stories from the seeded generator, a tokenizer of their own, the token cache
# that training reads, and a page that shows what is in it.
quickstart_data() {
  STAGE_SHOW=1 stage "data: stories, tokenizer, token cache" \
    hearth data prepare recipes/quickstart.yaml || return 1
  mkdir -p runs
  STAGE_SHOW=1 stage "data: a look" hearth data inspect recipes/quickstart.yaml \
    --documents 1 --batches 1 --html runs/quickstart-data.html || return 1
  printf 'the data as a page: runs/quickstart-data.html\n'
}

# A model from nothing, once: what was interrupted goes on, what is done stays.
quickstart_train() {
  local run=runs/quickstart
  if [ -e "$run/model/model.safetensors" ]; then
    printf 'trained already: %s (remove it to train again)\n' "$run"
  elif [ -e "$run/config.yaml" ]; then
    STAGE_SHOW=1 stage "train: going on" hearth train --resume "$run" || return 1
  else
    STAGE_SHOW=1 stage "train: a small model from nothing" \
      hearth train recipes/quickstart.yaml || return 1
  fi
  STAGE_SHOW=1 stage "generate: a story" hearth generate "$run" \
    -p "Once upon a time" --max-tokens 120 --temp 0.7 --seed 1 || return 1
  printf 'go on with: build/release/hearth generate %s -p "One day"\n' "$run"
  printf 'or take turns with it: build/release/hearth chat %s   (/help lists the commands)\n' "$run"
  printf 'or in a browser: build/release/hearth serve %s   (http://127.0.0.1:8080)\n' "$run"
}

cmd_doctor() { setup; build_preset release --target hearth; hearth doctor "$@"; }
cmd_bench() { setup; build_preset release --target hearth; hearth bench "$@"; }

# Runs ctest; holds its closing summary back until ours of cases and skips was
# printed, so that ctest has the last word. Three at a time: some of them wait.
run_tests() {
  local dir=$1 status=0
  shift
  rm -rf "$dir/results"
  mkdir -p "$dir/results"
  "$CTEST" --test-dir "$dir" --output-on-failure --output-junit results/ctest.xml \
    --test-output-size-passed 65536 -j 3 "$@" |
    awk -v tail="$dir/results/summary.txt" \
      '/^[0-9]+% tests passed/ { hold = 1 } hold { print > tail; next } { print; fflush() }' ||
    status=$?
  python3 tools/test_report.py "$dir/results"
  cat "$dir/results/summary.txt"
  return "$status"
}

# Under a sanitizer the unit tests: everything that reads bytes, shares memory
# or runs on threads is in them.
cmd_test() {
  local start=$SECONDS preset=release peers= extra=()
  while [ $# -gt 0 ]; do
    case $1 in
      --peers) peers=full ;;
      --peers=light) peers=light ;;
      --peers=*) fail "test takes --peers or --peers=light, got '$1'" 2 ;;
      asan | tsan) preset=$1; extra+=(-L unit) ;;
      arm64) preset=arm64 ;;
      *) extra+=("$1") ;;
    esac
    shift
  done
  if [ "$preset" = arm64 ]; then
    test_arm64 ${extra[@]+"${extra[@]}"}
    return
  fi
  setup
  [ -z "$peers" ] || { install_peers "$peers"; export HEARTH_PEERS=$peers; }
  build_preset "$preset"
  [ "$preset" != release ] || told_build_times
  printf '== tests\n'
  sanitizer_options
  run_tests "$(preset_dir "$preset")" ${extra[@]+"${extra[@]}"} ||
    fail "tests failed (./dev test took $((SECONDS - start)) s)"
}

# What a sanitizer finds ends the test that it was found in.
sanitizer_options() {
  export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
}

told_build_times() {
  python3 tools/build_times.py "$(preset_dir release)" ||
    printf 'the release build takes longer than it should: see the slowest files above\n'
}

source_files() { git ls-files --cached --others --exclude-standard '*.h' '*.cpp'; }

cmd_format() {
  ensure_venv
  install_pinned lint
  stop_if_missing
  source_files | xargs .deps/venv/bin/clang-format -i
}

check_format() { source_files | xargs .deps/venv/bin/clang-format --dry-run -Werror; }

cmd_lint() {
  if [ "${1:-}" = mac ]; then
    lint_mac
    return
  fi
  setup
  install_pinned lint
  stop_if_missing
  stage "format" check_format
  stage "layers" python3 tools/check_layers.py
  stage "lengths" python3 tools/check_length.py
  stage "map" python3 tools/check_map.py
  stage "names in the developers' pages" python3 tools/check_names.py
  stage "sources open with what they are" python3 tools/check_openings.py
  build_preset release
  # Told, not held: what it takes depends on who else uses the machine.
  STAGE_SHOW=1 stage "build time" told_build_times
  stage "headers compile alone" "$CMAKE" --build "$(preset_dir release)" \
    --target all_verify_interface_header_sets
  STAGE_SHOW=1 stage "clang-tidy" python3 tools/run_tidy.py "$(preset_dir release)" "$@"
}

# Every target, as many at a time as there are cores; what they found stays in
# build/fuzz/corpus for the next run.
cmd_fuzz() {
  local seconds=30 only= target names=
  while [ $# -gt 0 ]; do
    case $1 in
      --seconds) seconds=${2:-}; [ $# -gt 1 ] && shift ;;
      --seconds=*) seconds=${1#*=} ;;
      -*) fail "fuzz takes --seconds N and a part of a target's name, got '$1'" 2 ;;
      *) only=$1 ;;
    esac
    shift
  done
  case $seconds in "" | *[!0-9]*) fail "--seconds must be a whole number, got '$seconds'" 2 ;; esac
  [ "$(uname -s)" = Linux ] || fail "fuzzing needs libFuzzer, which Apple's compiler lacks: run it on Linux"
  setup "$FUZZ_PACKAGES"
  build_preset fuzz --target fuzz_targets
  for target in tests/fuzz/fuzz_*"$only"*.cpp; do
    [ -e "$target" ] || fail "no fuzz target has '$only' in its name: see tests/fuzz" 2
    names="$names $(basename "$target" .cpp)"
  done
  export -f fuzz_one fuzz_seeds fuzz_template_cases
  # shellcheck disable=SC2086
  STAGE_SHOW=1 stage "fuzzing, $seconds s each" eval \
    "printf '%s\n' $names | xargs -P $(cores) -I{} bash -c 'fuzz_one {} $seconds'"
}

cores() { getconf _NPROCESSORS_ONLN; }

# Folders of ours that a target starts from; with nothing it would spend its
# time on the first bracket.
fuzz_seeds() {
  local own=tests/fuzz/seeds/${1#fuzz_} real=../shared/data/fixtures/templates
  [ ! -d "$own" ] || echo "$own"
  case $1 in
    fuzz_yaml) echo profiles recipes ;;
    fuzz_json | fuzz_jsonl) echo tests/broken/jsonl tests/fuzz/seeds/tokenizer_json ;;
    fuzz_template)
      echo tests/broken/template
      fuzz_template_cases build/fuzz/seeds/template
      [ ! -d "$real" ] || echo "$real" ;;
    fuzz_tokenizer_*) echo tests/broken/tokenizer ;;
    fuzz_token_shard) echo tests/broken/shard ;;
    fuzz_gguf*) echo tests/broken/model tests/broken/tokenizer ;;
    fuzz_model_config | fuzz_safetensors) echo tests/golden/models tests/broken/model ;;
  esac
}

# Each template of the language cases as a file of its own.
fuzz_template_cases() {
  mkdir -p "$1"
  python3 -c '
import json, pathlib, sys
for i, line in enumerate(open("tests/golden/jinja_cases.jsonl", encoding="utf-8")):
    if "source" in (case := json.loads(line)):
        pathlib.Path(sys.argv[1], str(i)).write_text(case["source"], encoding="utf-8")
' "$1"
  echo "$1"
}

fuzz_one() {
  local dir=build/fuzz name=$1 log
  log=$dir/$name.log
  mkdir -p "$dir/corpus/$name"
  # shellcheck disable=SC2046
  if "$dir/tests/fuzz/$name" -max_total_time="$2" -max_len=8192 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$dir/$name-" "$dir/corpus/$name" $(fuzz_seeds "$name") > "$log" 2>&1; then
    printf '   %-24s %s executions\n' "$name" "$(awk '/number_of_executed_units/ { print $2 }' "$log")"
  else
    tail -n 30 "$log" >&2
    printf '   %s FOUND something: %s-*\n' "$name" "$dir/$name" >&2
    return 1
  fi
}
