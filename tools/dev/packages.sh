# System packages and the Python environment that fetches pinned wheels.
APT_PACKAGES="ca-certificates git g++ ninja-build cmake pkg-config python3 python3-venv ccache
  nlohmann-json3-dev libyaml-cpp-dev libfmt-dev libcli11-dev libgtest-dev
  libpcre2-dev libzstd-dev zlib1g-dev libssl-dev libcurl4-openssl-dev"
# Compiler and run time for fuzzing; Ubuntu 22.04 has both in one package.
FUZZ_PACKAGES="clang libclang-rt-dev"
grep -qs 'VERSION_ID="22.04"' /etc/os-release && FUZZ_PACKAGES=clang
BREW_PACKAGES="cmake ninja pkg-config ccache nlohmann-json yaml-cpp fmt cli11 googletest pcre2 zstd
  openssl@3"

# Those of them that are libraries.
library_packages() {
  # shellcheck disable=SC2086
  printf '%s\n' $APT_PACKAGES | grep -e '-dev$'
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif have sudo; then sudo "$@"
  else fail "system packages are missing and there is no sudo: as root, run: $*"; fi
}

missing_apt() {
  local p
  for p in $APT_PACKAGES ${1:-}; do
    dpkg-query -W -f='${Status}' "$p" 2> /dev/null | grep -q 'ok installed' || printf '%s ' "$p"
  done
}

# Installing ca-certificates replaces a bundle that was put there by hand, as
# behind a proxy that inspects TLS. Our downloads go on trusting that one.
keep_certificates() {
  local bundle=/etc/ssl/certs/ca-certificates.crt
  [ -s "$bundle" ] || return 0
  dpkg-query -W -f='${Status}' ca-certificates 2> /dev/null | grep -q 'ok installed' && return 0
  mkdir -p .deps
  cp "$bundle" .deps/certificates.crt
}

install_apt() {
  local wanted
  wanted=$(missing_apt "${1:-}")
  [ -n "$wanted" ] || return 0
  missing "system packages: $wanted" && return 0
  keep_certificates
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  printf 'system packages: %s\n' "$wanted"
  stage "system packages" eval \
    "as_root apt-get update -qq && as_root apt-get install -y -qq --no-install-recommends $wanted"
}

install_brew() {
  local p wanted=
  have clang++ || fail "the compiler is missing: run xcode-select --install"
  have brew || fail "Homebrew is missing: see https://brew.sh"
  for p in $BREW_PACKAGES; do brew list --versions "$p" > /dev/null 2>&1 || wanted="$wanted $p"; done
  [ -n "$wanted" ] || return 0
  missing "Homebrew packages:$wanted" && return 0
  # shellcheck disable=SC2086
  stage "Homebrew packages:$wanted" brew install $wanted
}

install_packages() {
  case $(uname -s) in
    Darwin) install_brew ;;
    Linux) have apt-get || fail "only apt is known here: install the equivalents of: $APT_PACKAGES"
      install_apt "${1:-}" ;;
    *) fail "$(uname -s) is not supported: use Linux or macOS" ;;
  esac
}

# The pip of an environment of ours, so that nobody's Python is touched.
ensure_venv() {
  if [ -e .deps/certificates.crt ]; then
    # Both: pip asks the one, the library under it prefers the other.
    export PIP_CERT=$PWD/.deps/certificates.crt REQUESTS_CA_BUNDLE=$PWD/.deps/certificates.crt
  fi
  [ -x .deps/venv/bin/pip ] && return 0
  missing "Python environment .deps/venv" && return 0
  stage "Python environment" python3 -m venv .deps/venv
}

# One section of tools/pins.txt as a requirements file.
pins() {
  awk -v section="[$1]" '$0 == section { on = 1; next } /^\[/ { on = 0 } on' tools/pins.txt
}

# install_pinned SECTION: pip-installs it into .deps/venv once per content.
install_pinned() {
  local stamp=.deps/venv/$1.pins
  [ -e "$stamp" ] && pins "$1" | cmp -s - "$stamp" && return 0
  missing "pinned tools of [$1]" && return 0
  ensure_venv
  pins "$1" > ".deps/$1.txt"
  stage "pinned tools: $1" .deps/venv/bin/pip install -q --disable-pip-version-check --no-deps \
    --only-binary=:all: --require-hashes -r ".deps/$1.txt"
  mv ".deps/$1.txt" "$stamp"
}

# A CMake that is new enough, as $CMAKE and $CTEST.
ensure_cmake() {
  local version
  CMAKE=cmake CTEST=ctest
  version=$(cmake --version 2> /dev/null | awk 'NR == 1 { print $3 }' || true)
  case $version in
    "" | [0-2].* | 3.[0-9] | 3.[0-9].* | 3.1[0-9]* | 3.2[0-4]*) ;;
    *) return 0 ;;
  esac
  CMAKE=$PWD/.deps/venv/bin/cmake CTEST=$PWD/.deps/venv/bin/ctest
  [ -x "$CMAKE" ] && return 0
  missing "CMake 3.25 or newer (found '${version:-none}')" && return 0
  ensure_venv
  stage "CMake from PyPI (the system's is ${version:-missing})" \
    .deps/venv/bin/pip install -q --disable-pip-version-check --only-binary=:all: 'cmake>=3.25,<4'
}
