#!/usr/bin/env bash
# Installs what the project needs on Debian 12 or Ubuntu 24.04, and nothing twice:
#   1. Debian packages: compiler, libraries, and the dictionaries whose text the demo reads;
#   2. a virtual environment of the project (.venv) with the PyTorch wheel, which carries LibTorch.
# With LIBTORCH=DIR (an unpacked LibTorch, or a torch package folder) step 2 is left out.
# Run it as root, or as a user with sudo; when everything is there it needs neither, nor a network.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_version=2.11.0
packages=(
  clang lld ninja-build cmake git ca-certificates python3 python3-venv
  libsentencepiece-dev libyaml-cpp-dev libspdlog-dev libfmt-dev libcli11-dev libhdf5-dev nlohmann-json3-dev
  libxxhash-dev zlib1g-dev libicu-dev libgtest-dev libgmock-dev
)
text_packages=(bible-kjv bible-kjv-text dict-freedict-deu-eng)
[ "${1:-}" = --no-text ] || packages+=("${text_packages[@]}")

say() { printf 'setup: %s\n' "$*"; }

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing Debian packages (1 to 3 minutes): ${missing[*]}"
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { say "needs root to install: ${missing[*]}. Run as root: apt-get install ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get -q update >/dev/null
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get -q install -y --no-install-recommends "${missing[@]}" >/dev/null
fi

if [ -n "${LIBTORCH:-}" ]; then
  say "LibTorch: $LIBTORCH (from the environment)"
elif [ "$(cat .venv/torch-version 2>/dev/null)" = "$torch_version" ]; then
  say "LibTorch: torch $torch_version in .venv"
else
  say "installing torch $torch_version into .venv (1 to 5 minutes, about 3 GB to download)"
  python3 -m venv .venv
  .venv/bin/pip install -q --disable-pip-version-check "torch==$torch_version"
  echo "$torch_version" > .venv/torch-version
fi
say "done"
