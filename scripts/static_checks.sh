#!/usr/bin/env bash
# Static analysis of our own sources; every finding is an error.
#
#   scripts/static_checks.sh cppcheck          all sources (seconds); what it misunderstands is in .cppcheck
#   scripts/static_checks.sh clang-tidy [FILE...]   the checks of .clang-tidy on these files, or on the half without torch (minutes);
#                                              needs build/default, built (its precompiled headers)
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  cppcheck)
    cppcheck --std=c++20 --language=c++ --library=googletest --enable=warning,performance,portability --inline-suppr --error-exitcode=1 --quiet \
      -j "$(nproc)" --suppressions-list=.cppcheck --template='{file}:{line}: {severity}: {message} [{id}]' -I include -I tests src tools examples tests
    ;;
  clang-tidy)
    shift
    build=${ELF_BUILD:-build/default}
    [ $# -gt 0 ] || set -- src/base/*.cpp src/config/*.cpp src/text/*.cpp src/metrics/*.cpp
    printf '%s\n' "$@" | xargs -P "$(nproc)" -n 2 clang-tidy -p "$build" --quiet --warnings-as-errors='*'
    ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
esac
