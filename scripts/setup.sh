#!/usr/bin/env bash
# Installs what the project needs on Debian 12 or Ubuntu 24.04, and nothing twice:
#   1. Debian packages: compiler, libraries, and the dictionaries whose text the demo reads (--no-text leaves these out);
#   2. a virtual environment of the project (.venv) with the PyTorch wheel, which carries LibTorch.
# With LIBTORCH=DIR (an unpacked LibTorch, or a torch package folder: what holds include/ and lib/) step 2 is left out.
# Run it as root, or as a user with sudo; when everything is there it needs neither, nor a network. Interrupted, it goes on when run again.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_version=2.11.0
cuda_headers=("nvidia-cuda-crt==13.0.*" "nvidia-cuda-cccl==13.0.*")  # the rest of them comes with torch
wheels="torch==$torch_version ${cuda_headers[*]}"
packages=(
  clang lld ninja-build cmake git ca-certificates python3 python3-venv
  libsentencepiece-dev libyaml-cpp-dev libspdlog-dev libfmt-dev libcli11-dev libhdf5-dev nlohmann-json3-dev
  libxxhash-dev libzip-dev zlib1g-dev libicu-dev libgtest-dev libgmock-dev libgloo-dev rapidjson-dev libfaiss-dev
)
text_packages=(bible-kjv bible-kjv-text dict-freedict-deu-eng)

say() { printf 'setup: %s\n' "$*"; }
fail() { say "$*" >&2; exit 1; }

case ${1:-} in
  '') packages+=("${text_packages[@]}") ;;
  --no-text) ;;
  -h|--help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  *) say "what is '$1'? The only option is --no-text" >&2; exit 2 ;;
esac

# ------------------------------------------------------------------------------------------- Debian packages

command -v dpkg-query >/dev/null || fail "this is no Debian or Ubuntu. Install the equivalents of: ${packages[*]}"
missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "needs root. Run as root: apt-get update; apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing Debian packages (1 to 3 minutes): ${missing[*]}"
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update >/dev/null || fail "apt-get update failed; is there a network?"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null </dev/null ||
    fail "apt-get could not install: ${missing[*]} (on Ubuntu they are in 'universe')"
fi

# -------------------------------------------------------------------------------------------------- LibTorch

if [ -n "${LIBTORCH:-}" ]; then
  [ -e "$LIBTORCH/lib/libtorch_cpu.so" ] || { say "LIBTORCH=$LIBTORCH holds no lib/libtorch_cpu.so; it must name what holds include/ and lib/" >&2; exit 2; }
  say "LibTorch: $LIBTORCH (from the environment)"
elif [ "$(cat .venv/wheels 2>/dev/null)" = "$wheels" ]; then
  say "LibTorch: torch $torch_version in .venv"
else
  free_mib=$(df -Pm . | awk 'NR == 2 { print $4 }')
  [ "$free_mib" -gt 9000 ] || say "warning: $free_mib MiB are free here; torch $torch_version needs about 9000 to install" >&2
  say "installing torch $torch_version into .venv (1 to 5 minutes, about 3 GB to download; LIBTORCH=DIR takes another LibTorch)"
  # The mark is written last: whatever an interruption left is completed, or made anew when even pip is missing.
  .venv/bin/python3 -m pip --version >/dev/null 2>&1 || python3 -m venv --clear .venv ||
    fail "python3 -m venv failed; is the package python3-venv of this python3 installed?"
  quiet=(-q)
  [ ! -t 1 ] || quiet=()
  .venv/bin/python3 -m pip install "${quiet[@]}" --disable-pip-version-check --no-input "torch==$torch_version" "${cuda_headers[@]}" ||
    fail "pip could not install $wheels; run this again, or give LIBTORCH=DIR"
  printf '%s\n' "$wheels" > .venv/wheels
fi
say "done"
