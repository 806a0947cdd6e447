#!/usr/bin/env bash
# install_test.sh SOURCE BUILD COMPILER MODEL SCRATCH: installs the build into SCRATCH/prefix, builds examples/generate against it with
# find_package(elf) alone, and compares what that program and the installed elf-sample generate.
set -euo pipefail
source=$1 build=$2 compiler=$3 model=$4 scratch=$5
rm -rf "$scratch"
mkdir -p "$scratch"

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

cmake --install "$build" --prefix "$scratch/prefix" > "$scratch/install.log"
"$scratch/prefix/bin/elf-sample" --version
[ -e "$scratch/prefix/share/elf/configs/nano-verses.yaml" ] || fail "the configurations were not installed"
! grep -rl --include='*.cmake' "$source/\(include\|src\|cmake\)" "$scratch/prefix" || fail "the package points back into the source folder"

cmake -G Ninja -S "$source/examples/generate" -B "$scratch/build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$scratch/prefix"
cmake --build "$scratch/build"

"$scratch/build/generate" "$model" 6 > "$scratch/generated.txt"
"$scratch/prefix/bin/elf-sample" --model "$model" --num-samples 6 > "$scratch/sampled.txt"
[ "$(wc -l < "$scratch/generated.txt")" = 6 ] || fail "generate printed $(wc -l < "$scratch/generated.txt") lines, expected 6"
diff "$scratch/generated.txt" "$scratch/sampled.txt" || fail "generate and elf-sample differ"

code=0
"$scratch/build/generate" "$scratch/nowhere" 2> "$scratch/error.txt" || code=$?
[ "$code" = 2 ] && grep -q nowhere "$scratch/error.txt" || fail "a missing model: exit code $code, $(cat "$scratch/error.txt")"
