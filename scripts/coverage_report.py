#!/usr/bin/env python3
"""Lines that tests run, from `llvm-cov export --summary-only`: by folder, then the files with the most lines that nothing runs, then all.

    coverage_report.py coverage.json
"""
import collections
import json
import os
import sys


def row(name, lines, run):
    return f"{name:<44} {lines:>7,} {lines - run:>7,} {100 * run / max(1, lines):>7.1f} %"


def main():
    files = []
    for one in json.load(open(sys.argv[1]))["data"][0]["files"]:
        lines = one["summary"]["lines"]
        files.append((os.path.relpath(one["filename"]), lines["count"], lines["covered"]))
    folders = collections.defaultdict(lambda: [0, 0])
    for name, lines, run in files:
        for key in (os.path.dirname(name), "all"):
            folders[key][0] += lines
            folders[key][1] += run
    print(f"{'':<44} {'lines':>7} {'not run':>7} {'run':>9}")
    for folder, (lines, run) in sorted(folders.items(), key=lambda entry: (entry[0] == "all", entry[0])):
        print(row(folder, lines, run))
    by_loss = sorted(files, key=lambda entry: entry[2] - entry[1])
    print("\nFiles with the most lines that nothing runs:")
    for entry in by_loss[:20]:
        print(row(*entry))
    print("\nEvery file:")
    for entry in sorted(files):
        print(row(*entry))


if __name__ == "__main__":
    main()
