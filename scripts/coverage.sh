#!/usr/bin/env bash
# Which lines of include/, src/ and tools/ the tests run: a table by folder and, below it, the files with the most lines that nothing runs.
#
#   scripts/coverage.sh [CTEST ARGUMENT...]    for example: scripts/coverage.sh -L unit; without arguments all tests but the
#                                              quick demos, which train for minutes, and those that use their models
#
# Builds the preset `coverage` (as long as the default one) and runs the tests. build/coverage/report.txt has every file, and
# `llvm-cov show` every line: the last line printed tells how. Another build folder with -DELF_COVERAGE=ON: ELF_COVERAGE_BUILD=build/asan.
# Needs Debian's package llvm.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in -h|--help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;; esac
for program in llvm-profdata llvm-cov; do
  command -v $program >/dev/null || { echo "coverage: $program is not there; install Debian's package llvm" >&2; exit 2; }
done

build=${ELF_COVERAGE_BUILD:-build/coverage}
[ $# -gt 0 ] || set -- -E '^(demo_quick_.*|installed_package|documented_commands)$'
[ -n "${ELF_COVERAGE_BUILD:-}" ] || cmake --preset coverage >/dev/null
cmake --build "$build" -j "$(nproc)"
rm -rf "$build/profiles"
mkdir -p "$build/profiles"
# %c: counted in the file itself; %m: one file a program, shared by its processes.
status=0
LLVM_PROFILE_FILE=$PWD/$build/profiles/%c%m.profraw ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "$@" || status=$?

llvm-profdata merge --sparse --failure-mode=all -o "$build/merged.profdata" "$build"/profiles/*.profraw
mapfile -t programs < <(find "$build/bin" "$build/tests" -type f -executable ! -name '*.so' | sort)
objects=()
for program in "${programs[@]:1}"; do objects+=(-object "$program"); done
llvm-cov export --summary-only --instr-profile "$build/merged.profdata" "${programs[0]}" "${objects[@]}" \
  --ignore-filename-regex='(^|/)(tests|examples|generated|usr|\.venv)/' > "$build/coverage.json" 2> "$build/coverage.log"
python3 scripts/coverage_report.py "$build/coverage.json" | tee "$build/report.txt" | sed '/^Every file/,$d'
echo "Lines of one file: llvm-cov show --instr-profile $build/merged.profdata ${programs[0]} ${objects[0]:-} ... src/FOLDER/FILE.cpp"
exit "$status"
