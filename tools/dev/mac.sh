# ./dev lint mac: the whole tree compiled and linked for an Apple Silicon Mac,
# on Linux. It shows that every source and test compiles against MLX's macOS
# wheel and what macOS has; it does not show that anything runs.
MAC_PACKAGES=googletest

# The headers of the libraries we lean on, and none of the C library's.
copy_mac_headers() {
  local folder=$1 file name
  rm -rf "$folder"
  mkdir -p "$folder/include"
  # shellcheck disable=SC2046
  dpkg -L $(library_packages) | grep '^/usr/include/' | while read -r file; do
    [ -f "$file" ] || continue
    name=${file#/usr/include/}
    case $name in *-linux-gnu/*) name=${name#*/} ;; esac
    mkdir -p "$folder/include/$(dirname "$name")"
    cp "$file" "$folder/include/$name" || return 1
  done
}

ensure_mac_headers() {
  local stamp=.deps/mac/versions versions
  # shellcheck disable=SC2046,SC2016
  versions=$(dpkg-query -W -f '${Package} ${Version}\n' $(library_packages))
  [ "$(cat "$stamp" 2> /dev/null)" = "$versions" ] && return 0
  stage "the libraries' headers" copy_mac_headers .deps/mac
  printf '%s\n' "$versions" > "$stamp"
}

lint_mac() {
  [ "$(uname -s)" = Linux ] || fail "lint mac compiles for a Mac on Linux; on a Mac, run ./dev test" 2
  install_packages "$MAC_PACKAGES"
  ensure_cmake
  ensure_venv
  install_pinned zig
  ensure_mlx_wheels mlx-metal .deps/mlx-macos macosx_14_0_arm64
  stop_if_missing
  ensure_mac_headers
  # The compiler is a script of ours: what it runs is what the pins say.
  export CCACHE_COMPILERCHECK="string:$(pins zig)" CCACHE_SLOPPINESS=pch_defines,time_macros
  build_preset mac
  STAGE_SHOW=1 stage "programs for a Mac" eval \
    "find build/mac -type f -perm -u+x -name 'hearth*' | xargs python3 tools/check_macho.py"
}
