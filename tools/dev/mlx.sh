# MLX as pinned wheels, unpacked side by side: the library finds its own parts
# by paths relative to mlx/.

# The platform tags pip is asked for, whatever Python runs it.
mlx_platforms() {
  case $(uname -s)-$(uname -m) in
    Darwin-arm64) echo macosx_14_0_arm64 ;;
    Linux-x86_64) echo manylinux_2_35_x86_64 manylinux_2_28_x86_64 manylinux_2_27_x86_64 \
      manylinux_2_17_x86_64 manylinux2014_x86_64 manylinux_2_12_x86_64 manylinux2010_x86_64 ;;
    Linux-aarch64) echo manylinux_2_35_aarch64 ;;
    *) fail "MLX has no wheel for $(uname -sm): build it and give HEARTH_MLX=/folder" ;;
  esac
}

# fetch_mlx FOLDER SECTION PLATFORM...
# A stage's commands run with `set -e` off, so each says what a failure means.
fetch_mlx() {
  local folder=$1 section=$2 options= p wheel
  shift 2
  for p in "$@"; do options="$options --platform $p"; done
  rm -rf "$folder" "$folder.new"
  mkdir -p "$folder.new/wheels"
  pins "$section" > "$folder.new/pins"
  # shellcheck disable=SC2086
  .deps/venv/bin/pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes --python-version 3.11 $options -d "$folder.new/wheels" -r "$folder.new/pins" ||
    return 1
  for wheel in "$folder.new"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$folder.new" || return 1
  done
  rm -rf "$folder.new/wheels"
  mv "$folder.new" "$folder"
}

# Sets MLX_OPTIONS for CMake.
ensure_mlx() {
  local flavour=${HEARTH_MLX:-} section folder root
  MLX_OPTIONS=()
  case $flavour in
    system) return 0 ;;
    /*) MLX_OPTIONS=("-DMLX_ROOT=$flavour"); return 0 ;;
    "") if [ "$(uname -s)" = Darwin ]; then flavour=metal; else flavour=cpu; fi ;;
    cpu | metal | cuda13) ;;
    *) fail "HEARTH_MLX must be cpu, metal, cuda13, system or a folder, got '$flavour'" 2 ;;
  esac
  section=mlx-$flavour
  folder=.deps/mlx
  if [ "$flavour" = cuda13 ]; then
    folder=.deps/mlx-cuda13
    root=$PWD/$folder
    MLX_OPTIONS=("-DMLX_ROOT=$root/mlx" "-DCMAKE_PREFIX_PATH=$root/nvidia/cudnn;$root/nvidia/cu13")
  fi
  # shellcheck disable=SC2046
  ensure_mlx_wheels "$section" "$folder" $(mlx_platforms)
}

# ensure_mlx_wheels SECTION FOLDER PLATFORM...: once for each content of the pins.
ensure_mlx_wheels() {
  local section=$1 folder=$2
  shift 2
  [ -e "$folder/pins" ] && pins "$section" | cmp -s - "$folder/pins" && return 0
  missing "MLX wheels ($section for ${1%%_*})" && return 0
  ensure_venv
  stage "MLX wheels ($section)" fetch_mlx "$folder" "$section" "$@"
}
