# Set-up as a whole, configure, build.
setup() {
  install_packages "${1:-}"
  ensure_cmake
  ensure_venv
  ensure_mlx
  stop_if_missing
}

# Where a preset is built; CUDA has a folder of its own.
preset_dir() { if [ "${HEARTH_MLX:-}" = cuda13 ]; then echo "build/$1-cuda13"; else echo "build/$1"; fi; }

configure() {
  local preset=$1 dir
  dir=$(preset_dir "$preset")
  # Ninja configures again by itself when a CMake file changed.
  [ -e "$dir/build.ninja" ] && return 0
  stage "configure $preset" "$CMAKE" --preset "$preset" -B "$dir" \
    ${HEARTH_UNITY:+"-DHEARTH_UNITY=$HEARTH_UNITY"} ${MLX_OPTIONS[@]+"${MLX_OPTIONS[@]}"}
}

build_preset() {
  local preset=$1 dir
  shift
  dir=$(preset_dir "$preset")
  configure "$preset"
  stage "build $preset" "$CMAKE" --build "$dir" "$@"
}

cmd_build() {
  local preset=${1:-release} target=hearth made=/hearth
  case $preset in
    release | dev | asan) ;;
    tsan) target=all made= ;;
    fuzz) fail "./dev fuzz builds and runs the fuzz targets" 2 ;;
    *) fail "the preset must be release, dev, asan or tsan, got '$preset'" 2 ;;
  esac
  setup
  build_preset "$preset" --target "$target"
  printf 'built %s%s\n' "$(preset_dir "$preset")" "$made"
}

cmd_clean() {
  case ${1:-} in
    "") rm -rf build ;;
    --all) rm -rf build .deps ;;
    *) fail "clean takes --all or nothing, got '$1'" 2 ;;
  esac
}
