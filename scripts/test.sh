#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests, the quick demo among them. Under 30 minutes on two cores from a bare
# machine; a second run builds nothing and takes the time of the tests. Needs no terminal. The last line is "N passed, N failed".
#
#   scripts/test.sh [CTEST ARGUMENT...]      for example: scripts/test.sh -L unit
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}  # several programs share the cores: threads that wait should not spin

began=$SECONDS
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }
finish() {  # PASSED FAILED
  printf '\n%s passed, %s failed\n' "$1" "$2"
  [ "$2" = 0 ] && [ "$1" != 0 ] || exit 1
  exit 0
}
step() {  # TITLE COMMAND...
  local title=$1 started=$SECONDS
  shift
  printf '== %s\n' "$title"
  "$@" || { printf '\n%s failed (exit code %s)\n' "$title" "$?"; finish 0 1; }
  printf '   took %s\n' "$(clock $((SECONDS - started)))"
}

step "Set-up" scripts/setup.sh
step "Configuration" cmake --preset default
step "Build" cmake --build --preset default -j "$(nproc)"

printf '== Tests\n'
build=build/default
results=$build/test-results.xml
rm -f "$results"
status=0
ctest --preset default -j "$(nproc)" --output-junit "$PWD/$results" "$@" || status=$?

# <testsuite ... tests="12" failures="0" disabled="0" skipped="0" ...>
count() { sed -n "s/.*<testsuite.*$1=\"\([0-9]*\)\".*/\1/p" <(tr '\n\t' '  ' < "$results" | grep -o '<testsuite [^>]*>') | head -n 1; }
[ -s "$results" ] || { printf 'ctest left no %s (exit code %s)\n' "$results" "$status"; finish 0 1; }
total=$(count tests) failed=$(count failures) skipped=$(($(count skipped) + $(count disabled)))
printf '\nAll of it took %s. Results: %s; skipped: %s\n' "$(clock $((SECONDS - began)))" "$results" "$skipped"
[ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1  # ctest itself failed
finish $((total - failed - skipped)) "$failed"
