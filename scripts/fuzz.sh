#!/usr/bin/env bash
# Feeds the readers of foreign bytes with what a fuzzer thinks up (tests/fuzz), sanitizers on.
#
#   scripts/fuzz.sh                      names the targets
#   scripts/fuzz.sh TARGET|all [SECONDS] fuzzes one, or each in turn (60 seconds each if not told)
#
# Builds the preset asan where it has to. What is learnt lies in build/asan/fuzz/TARGET and serves the next time; an input that breaks a reader
# in build/asan/fuzz/TARGET-found: mend the reader, give the input a name and keep it in tests/fuzz/corpus/TARGET. Exit code 1 when there was one.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${ELF_FUZZ_BUILD:-build/asan}
export OMP_NUM_THREADS=1
export ASAN_OPTIONS=detect_odr_violation=0:detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
for half in core torch; do
  [ -x "$build/bin/fuzz_$half" ] && continue
  [ -f "$build/build.ninja" ] || cmake --preset asan
  cmake --build "$build" --target "fuzz_$half"
done
if [ $# = 0 ]; then
  "$build/bin/fuzz_core" && "$build/bin/fuzz_torch"
  exit
fi

wanted=$1 seconds=${2:-60} found=0
scratch=$(mktemp -d "$([ -d /dev/shm ] && echo /dev/shm || echo /tmp)/elf-fuzz-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
for half in core torch; do
  for target in $("$build/bin/fuzz_$half"); do
    [ "$wanted" = all ] || [ "$wanted" = "$target" ] || continue
    ran=1 work=$build/fuzz/$target
    mkdir -p "$work" "$work-found"
    dictionary=tests/fuzz/$target.dict
    TMPDIR=$scratch ELF_FUZZ_TARGET=$target "$build/bin/fuzz_$half" "$work" "tests/fuzz/corpus/$target" \
      -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=65536 -artifact_prefix="$work-found/" \
      -print_final_stats=1 $([ -f "$dictionary" ] && echo "-dict=$dictionary") >"$work.log" 2>&1 || found=1
    printf '%-18s %s\n' "$target" "$(awk '/^stat::number_of_executed_units/ {runs = $2} / cov: / {for (i = 1; i < NF; ++i) if ($i == "cov:") cover = $(i + 1)}
      /^SUMMARY|broken promise/ {fault = fault " " $0} END {printf "%s runs, %s edges%s", runs, cover, fault ? ", FOUND:" fault : ""}' "$work.log")"
  done
done
[ -n "${ran:-}" ] || { echo "fuzz.sh: no target '$wanted'; without arguments the names are printed" >&2; exit 2; }
exit $found
