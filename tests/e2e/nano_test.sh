#!/usr/bin/env bash
# nano_test.sh SOURCE BIN SCRATCH: the models of data/models as a user meets them. Their files are whole; what they write is what
# tests/golden/nano holds, for nearly every text (sums in another order, on another machine, may turn a text that was a
# near thing); and it is the same for every batch size.
set -euo pipefail
source=$1 bin=$2 scratch=$3
export OMP_WAIT_POLICY=passive
rm -rf "$scratch"
mkdir -p "$scratch"
models=$source/data/models golden=$source/tests/golden/nano

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
sample() { "$bin/elf-sample" --log-level error "$@"; }

for name in nano-de-en nano-verses; do
  "$bin/elf-inspect" "$models/$name" > "$scratch/$name.inspected" || fail "$name is not whole: $(cat "$scratch/$name.inspected")"
  size=$(du -sb "$models/$name" | cut -f1)
  [ "$size" -le 12000000 ] || fail "$name has $size bytes, at most 12 MB are wanted"
done

python3 -c '
import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    print(json.loads(line)["condition"])' "$golden/nano-de-en.jsonl" > "$scratch/phrases.txt"
for batch in 1 5 64; do
  sample --model "$models/nano-de-en" --input "$scratch/phrases.txt" --seed 1 --batch-size "$batch" --output "$scratch/de-en.$batch.jsonl"
  sample --model "$models/nano-verses" --num-samples 12 --seed 1 --batch-size "$batch" --output "$scratch/verses.$batch.jsonl"
  cmp "$scratch/de-en.$batch.jsonl" "$scratch/de-en.1.jsonl" || fail "translations depend on the batch size"
  cmp "$scratch/verses.$batch.jsonl" "$scratch/verses.1.jsonl" || fail "clauses depend on the batch size"
done

typed=$(printf 'der Hund\n' | sample --model "$models/nano-de-en" --input -)
[ "$typed" = "the dog" ] || fail "'der Hund' became '$typed'"

python3 - "$golden" "$scratch" <<'PYTHON'
import json
import pathlib
import sys

golden, scratch = map(pathlib.Path, sys.argv[1:])


def texts(path):
    return [json.loads(line)["text"] for line in open(path, encoding="utf-8")]


for name, made in (("nano-de-en", "de-en.1.jsonl"), ("nano-verses", "verses.1.jsonl")):
    expected, found = texts(golden / f"{name}.jsonl"), texts(scratch / made)
    if len(expected) != len(found):
        sys.exit(f"FAILED: {name}: {len(found)} texts, expected {len(expected)}")
    equal = sum(a == b for a, b in zip(expected, found))
    print(f"{name}: {equal} of {len(expected)} texts as expected")
    if equal < 0.75 * len(expected):
        sys.exit(f"FAILED: {name}: {equal} of {len(expected)} texts as expected; the first other one: "
                 + next(f"'{b}', expected '{a}'" for a, b in zip(expected, found) if a != b))
PYTHON
