# ./dev test arm64: the kernels' and ops' tests for arm64, so that NEON's
# results are held against the plain kernels, under an emulator on any machine.
ARM64_PACKAGES="g++-aarch64-linux-gnu qemu-user"

# What is unpacked of all that the libraries depend on: not the C library, which
# comes with the cross compiler.
ARM64_UNPACKED='^(nlohmann|zlib1g|googletest|lib(yaml-cpp|fmt|cli11|gtest|pcre2|zstd|ssl|curl))'

# apt for arm64 with lists and state of its own: the system is not touched, and
# need not know of a second architecture.
ARM64_STATE=$PWD/.deps/arm64/apt
arm64_apt() {
  local state=$ARM64_STATE
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
    -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
    -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts="$state/sources.d" "$@"
}

# Debian's mirrors have every architecture; Ubuntu keeps arm64 on others.
arm64_sources() {
  local state=$ARM64_STATE key=/usr/share/keyrings/ubuntu-archive-keyring.gpg suite name
  mkdir -p "$state/sources.d" "$state/lists/partial" "$state/cache/archives/partial"
  : > "$state/status"
  : > "$state/sources.list"
  # shellcheck disable=SC1091
  name=$(. /etc/os-release && echo "$ID $VERSION_CODENAME")
  case $name in
    ubuntu\ *)
      for suite in "${name#* }" "${name#* }-updates" "${name#* }-security"; do
        echo "deb [signed-by=$key] http://ports.ubuntu.com/ubuntu-ports $suite main universe"
      done > "$state/sources.list" ;;
    *)
      [ ! -e /etc/apt/sources.list ] || cp /etc/apt/sources.list "$state/sources.list"
      cp /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list "$state/sources.d" 2> /dev/null
      true ;;
  esac
}

fetch_arm64_libraries() {
  local folder=.deps/arm64 names package link
  rm -rf "$folder"
  arm64_sources && arm64_apt update || return 1
  # shellcheck disable=SC2046
  names=$(arm64_apt -s install --no-install-recommends $(library_packages)) || return 1
  names=$(printf '%s\n' "$names" | awk -v wanted="$ARM64_UNPACKED" '$1 == "Inst" && $2 ~ wanted { print $2 }')
  mkdir -p "$folder/packages" "$folder/root"
  # shellcheck disable=SC2086
  (cd "$folder/packages" && arm64_apt download $names) || return 1
  for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder/root" || return 1; done
  # Links that name a place from the root on would lead to this machine's.
  find "$folder/root" -type l -lname '/*' | while read -r link; do
    ln -sfn "$PWD/$folder/root$(readlink "$link")" "$link" || return 1
  done
  rm -rf "$folder/packages" "$folder/apt"
}

ensure_arm64_libraries() {
  local stamp=.deps/arm64/wanted
  [ "$(cat "$stamp" 2> /dev/null)" = "$(library_packages)" ] && return 0
  missing "the libraries for arm64" && return 0
  stage "the libraries for arm64" fetch_arm64_libraries
  library_packages > "$stamp"
}

# The kernels' and ops' tests: built, and run under the emulator.
test_arm64() {
  local dir
  [ "$(uname -sm)" = "Linux x86_64" ] || fail "test arm64 emulates one on Linux x86-64; here, run ./dev test" 2
  setup "$ARM64_PACKAGES"
  ensure_arm64_libraries
  ensure_mlx_wheels mlx-cpu .deps/mlx-arm64 manylinux_2_35_aarch64
  stop_if_missing
  build_preset arm64 --target hearth_kernels_tests hearth_ops_tests
  dir=$(preset_dir arm64)
  printf '== tests for arm64, emulated\n'
  run_tests "$dir" -R '^unit\.(kernels|ops)$|^isa\.' "$@" || fail "tests for arm64 failed"
}
