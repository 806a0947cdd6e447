#!/usr/bin/env bash
# Times elf-bench beside a plain PyTorch program, in turn, several times, and prints the ratios (docs/PERFORMANCE.md).
#
#   scripts/bench_vs_peer.sh [--peer FILE] [--pairs N] [--steps N] [--threads N] [--out DIR] [CASE ...] [-- ARGS]
#
# CASE: train train-small sample sample-cfg (all of them, when none is named and no ARGS are given).
# ARGS: a case of your own, as both programs take it: -- train --preset elf-b --batch 4 --length 256
# Each program is a process of its own, so that peak memory is its own too. DIR keeps every JSON line.
set -euo pipefail
cd "$(dirname "$0")/.."

peer=bench/peer.py pairs=3 steps=3 threads=$(nproc) out= bin=build/default/bin/elf-bench cases=() own=()
while [ $# -gt 0 ]; do
  case $1 in
    --peer) peer=$2; shift 2 ;;
    --pairs) pairs=$2; shift 2 ;;
    --steps) steps=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --) shift; own=("$@"); break ;;
    -*) echo "error: unknown option $1; see $0 --help" >&2; exit 2 ;;
    *) cases+=("$1"); shift ;;
  esac
done
[ ${#cases[@]} -gt 0 ] || [ ${#own[@]} -gt 0 ] || cases=(train train-small sample sample-cfg)
[ -x "$bin" ] || { echo "error: $bin is missing; build it: cmake --build --preset default" >&2; exit 2; }
[ -f "$peer" ] || { echo "error: $peer: no such file" >&2; exit 2; }
python=.venv/bin/python3
[ -x "$python" ] || python=python3
"$python" -c 'import torch' 2>/dev/null || { echo "error: $python has no torch; run scripts/setup.sh" >&2; exit 2; }

arguments_of() {
  case $1 in
    train) echo train --preset elf-b --batch 8 --length 128 ;;
    train-small) echo train --preset small --latent 128 --vocab 4000 --batch 64 --length 64 ;;
    sample) echo sample --preset elf-b --batch 8 --length 128 --sampling-steps 8 ;;
    sample-cfg) echo sample --preset elf-b --batch 8 --length 128 --sampling-steps 8 --condition 64 --cfg 2 ;;
    own) echo "${own[@]}" ;;
    *) echo "error: case '$1': expected train, train-small, sample or sample-cfg" >&2; return 2 ;;
  esac
}

folder=${out:-$(mktemp -d)}
mkdir -p "$folder"
[ -n "$out" ] || trap 'rm -rf "$folder"' EXIT
[ ${#own[@]} -eq 0 ] || cases+=(own)
export OMP_NUM_THREADS=$threads
for name in "${cases[@]}"; do
  read -r -a args <<< "$(arguments_of "$name")"
  : > "$folder/$name.ours.jsonl"
  : > "$folder/$name.peer.jsonl"
  for ((pair = 1; pair <= pairs; ++pair)); do
    echo "$name: pair $pair of $pairs (load $(cut -d' ' -f1 /proc/loadavg))" >&2
    "$bin" speed "${args[@]}" --steps "$steps" --threads "$threads" --json >> "$folder/$name.ours.jsonl"
    "$python" "$peer" "${args[@]}" --steps "$steps" --threads "$threads" 2>/dev/null >> "$folder/$name.peer.jsonl"
  done
done

"$python" - "$folder" "${cases[@]}" <<'PY'
import json, pathlib, statistics, sys
folder, cases = pathlib.Path(sys.argv[1]), sys.argv[2:]
read = lambda name: [json.loads(line) for line in (folder / name).read_text().splitlines()]
middle = lambda values: statistics.median(values)
print(f"{'case':12} {'ours':>9} {'peer':>9}  tokens/s: ratio (of each pair)      memory  optimiser  utilisation  GEMM GFLOP/s")
for case in cases:
    pairs = list(zip(read(f"{case}.ours.jsonl"), read(f"{case}.peer.jsonl")))
    speed = [a["tokens_per_second"] / b["tokens_per_second"] for a, b in pairs]
    memory = middle([a["peak_rss_mib"] / b["peak_rss_mib"] for a, b in pairs])
    phases = [(a["phases_median"].get("optimiser"), b["phases_median"].get("optimiser")) for a, b in pairs]
    optimiser = f"{middle([x / y for x, y in phases]):.2f}" if all(x and y for x, y in phases) else "-"
    each = " ".join(f"{s:.2f}" for s in speed)
    print(f"{case:12} {middle([a['tokens_per_second'] for a, _ in pairs]):9.1f} {middle([b['tokens_per_second'] for _, b in pairs]):9.1f}"
          f"  {middle(speed):6.2f} ({each}){'':{max(1, 24 - len(each))}} {memory:6.2f} {optimiser:>10}"
          f" {100 * middle([a['utilisation'] for a, _ in pairs]):10.1f} % {middle([a['gemm_gflops'] for a, _ in pairs]):8.0f} / {middle([b['gemm_gflops'] for _, b in pairs]):.0f}")
PY
