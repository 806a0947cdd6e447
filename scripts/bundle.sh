#!/usr/bin/env bash
# A folder that runs elsewhere: the tools, the Debian libraries they need, configurations, golden tests, the speed peer.
# For clusters and GPU machines where nothing can be installed (x86-64, glibc 2.36 or newer). LibTorch is not in it:
# there it is found through LIBTORCH (what holds lib/libtorch_cpu.so) or through python3's torch 2.11.
#
#   scripts/bundle.sh [--build DIR] [--out DIR] [--archive]      # build/default, build/bundle; --archive: also DIR.tar.gz
#   rsync -a build/bundle/ there:elf/ && ssh there elf/bin/elf-sample --help
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/default out=build/bundle archive=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --archive) archive=1; shift ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "error: unknown option $1; see $0 --help" >&2; exit 2 ;;
  esac
done
tools=("$build"/bin/elf-*)
[ -x "${tools[0]}" ] || { echo "error: $build/bin holds no tools; build them: cmake --build --preset default" >&2; exit 2; }

fresh=$out.new.$$
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh"/{bin,lib,libexec,tests}

programs=("${tools[@]}")
for test in optim/optim_test model/elf_net_test flow/flow_objective_test sample/sampler_oracle_test; do
  [ ! -x "$build/tests/$test" ] || programs+=("$build/tests/$test")
done
for program in "${programs[@]}"; do
  strip -o "$fresh/libexec/$(basename "$program")" "$program"
done

# Every library but LibTorch's own and those of glibc itself, which must be the machine's.
needed=$(ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u)
torch=$(awk '$1 == "libtorch_cpu.so" {print $2}' <<< "$needed")
[ -n "$torch" ] || { echo "error: no tool of $build/bin is linked with LibTorch" >&2; exit 1; }
while read -r name path; do
  case $name in
    libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libutil.so* | libresolv.so* | ld-linux*) continue ;;
  esac
  case $path in
    "$(dirname "$torch")"/* | */nvidia/*) continue ;;
  esac
  cp -L "$path" "$fresh/lib/$name"
  strip --strip-unneeded "$fresh/lib/$name" 2>/dev/null || true
done <<< "$needed"

# What programs load when they use a GPU.
for plugin in "$build"/bin/libelf_*.so; do
  [ ! -e "$plugin" ] || strip --strip-unneeded -o "$fresh/lib/$(basename "$plugin")" "$plugin"
done

# ICU's data are mostly names of languages, regions, currencies and time zones in every language, and collations: 26 of
# 31 MB that no tool reads. Where ICU's own tools are there, they are taken out.
slim_icu() {
  local library=$1 work name symbol icupkg
  icupkg=$(PATH=$PATH:/usr/sbin command -v icupkg) || return 0
  work=$(mktemp -d)
  name=$(basename "$library")
  symbol=$(readelf -W --dyn-syms "$library" | awk '$8 ~ /^icudt[0-9]+_dat$/ {print $8}')
  objcopy -O binary --only-section=.rodata "$library" "$work/${symbol%_dat}l.dat"
  "$icupkg" -l "$work/${symbol%_dat}l.dat" |
    grep -E '^(coll|curr|lang|region|unit|zone|translit|rbnf)/|^[a-z]{2,3}(_[A-Za-z0-9_]+)?\.res$|\.cnv$' > "$work/dropped.txt"
  "$icupkg" -r "$work/dropped.txt" "$work/${symbol%_dat}l.dat" "$work/small.dat"
  printf '.section .rodata\n.globl %s\n.type %s, @object\n.balign 16\n%s:\n.incbin "%s"\n.size %s, . - %s\n.section .note.GNU-stack,"",@progbits\n' \
    "$symbol" "$symbol" "$symbol" "$work/small.dat" "$symbol" "$symbol" > "$work/data.s"
  clang -shared -nostdlib -Wl,-soname,"$name" -o "$library" "$work/data.s"
  rm -r "$work"
}
for library in "$fresh"/lib/libicudata.so.*; do
  slim_icu "$library"
done

cat > "$fresh/bin/run" <<'RUN'
#!/bin/sh
# Starts libexec/NAME with the libraries of this folder and LibTorch's.
name=$1
shift
here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
torch=${LIBTORCH:-}
if [ -z "$torch" ]; then
  torch=$(python3 -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")' 2>/dev/null)
fi
if [ ! -e "$torch/lib/libtorch_cpu.so" ]; then
  echo "error: no LibTorch: set LIBTORCH to the folder that holds lib/libtorch_cpu.so (2.11), or install torch for python3" >&2
  exit 2
fi
LD_LIBRARY_PATH=$here/lib:$torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/libexec/$name" "$@"
RUN
chmod +x "$fresh/bin/run"
for tool in "${tools[@]}"; do
  name=$(basename "$tool")
  printf '#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/run" %s "$@"\n' "$name" > "$fresh/bin/$name"
  chmod +x "$fresh/bin/$name"
done

cp -r configs "$fresh/"
mkdir "$fresh/bench"
cp bench/peer.py "$fresh/bench/"
cp scripts/bench_gpu.sh "$fresh/"
cp -r tests/golden "$fresh/tests/"
cp LICENSE "$fresh/"

rm -rf "$out"
mkdir -p "$(dirname "$out")"
mv "$fresh" "$out"
trap - EXIT
size=$(du -sm "$out" | cut -f1)
echo "$out: $size MiB, $(find "$out/libexec" -type f | wc -l) programs, $(find "$out/lib" -type f | wc -l) libraries"
[ -z "$archive" ] || tar -C "$(dirname "$out")" -czf "$out.tar.gz" "$(basename "$out")"
