#!/usr/bin/env bash
# demo_test.sh TASK SOURCE BIN SCRATCH: walks the quick demo with the tools in BIN, checks what it found, and that a second run does no work.
set -euo pipefail
task=$1 source=$2 bin=$3 scratch=$4
rm -rf "$scratch"

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
demo() { bash "$source/scripts/demo.sh" "$task" --quick --bin "$bin" --out "$scratch"; }

demo
[ -s "$scratch/report.txt" ] || fail "no report"
before=$(find "$scratch" -name '*.jsonl' -o -name '*.safetensors' -o -name '*.h5' -o -name '*.json' | LC_ALL=C sort | xargs sha256sum)

python3 - "$task" "$scratch" <<'PYTHON'
import json
import pathlib
import sys

task, scratch = sys.argv[1], pathlib.Path(sys.argv[2])


def score(name):
    return json.loads((scratch / "scores" / name).read_text())


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


# Wide limits: a minute of training on any machine passes them, a broken step on the way does not.
held_out = [line for line in map(json.loads, open(scratch / "run" / "metrics.jsonl")) if "valid_loss" in line][-1]
expect(held_out["valid_accuracy"] > 0.5, f"held-out decode accuracy {held_out['valid_accuracy']}, expected above 0.5")
if task == "verses":
    generated, real, nonsense = (score(f"{name}.ngram.json")["perplexity"] for name in ("samples", "valid", "shuffled"))
    expect(real < nonsense / 5, f"perplexity of real text {real}, of shuffled words {nonsense}: the scorer tells them apart no more")
    expect(generated < nonsense / 2, f"perplexity of samples {generated}, of shuffled words {nonsense}: nothing was learned")
    entropy = score("samples.diversity.json")["corpus_entropy"]
    expect(entropy > 2.5, f"entropy of the samples {entropy} nats: they are all alike")
else:
    made, copied = score("guided.match.json")["cer"], score("copy.match.json")["cer"]
    expect(0.3 < copied < 0.9, f"character error rate of copying the spelling {copied}, expected about 0.6")
    expect(made < copied, f"character error rate {made}, copying has {copied}: nothing was learned")
PYTHON

again=$(demo)
reused=$(grep -c 'reused$' <<< "$again") || true
[ "$reused" = 7 ] || fail "the second run reused $reused of 7 stages: $again"
after=$(find "$scratch" -name '*.jsonl' -o -name '*.safetensors' -o -name '*.h5' -o -name '*.json' | LC_ALL=C sort | xargs sha256sum)
[ "$before" = "$after" ] || fail "the second run changed files"
