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
  setup
  build_preset "${1:-release}" --target hearth
  printf 'built %s/hearth\n' "$(preset_dir "${1:-release}")"
}

cmd_clean() {
  rm -rf build
  [ "${1:-}" = --all ] && rm -rf .deps
  return 0
}
