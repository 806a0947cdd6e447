#!/usr/bin/env bash
# A few minutes on a GPU machine: golden tests, the speed of ELF-B, M and L beside plain PyTorch in bf16 (sampling also
# without CUDA graphs), a profile.
# Runs from a bundle (scripts/bundle.sh) or from the repository after a build. Leaves one folder of JSON lines and logs.
#
#   ./bench_gpu.sh [--out DIR] [--device cuda] [--precision bf16] [--quick]
#
# A part that fails is told in summary.txt and does not stop the others; the exit code is 1 then.
set -uo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
out=bench_gpu.$(date +%Y%m%d-%H%M%S) device=cuda precision=bf16 quick=
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2; shift 2 ;;
    --device) device=$2; shift 2 ;;
    --precision) precision=$2; shift 2 ;;
    --quick) quick=1; shift ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "error: unknown option $1; see $0 --help" >&2; exit 2 ;;
  esac
done

if [ -x "$here/bin/run" ]; then
  root=$here
  program() { local name=$1; shift; "$root/bin/run" "$name" "$@"; }
  tests=$(cd "$root/libexec" && ls | grep _test)
else
  root=$(cd "$here/.." && pwd)
  program() { local name=$1; shift; "$(find "$root/build/default" -name "$name" -type f -perm -u+x | head -1)" "$@"; }
  tests="optim_test elf_net_test flow_objective_test sampler_oracle_test"
fi
python=$root/.venv/bin/python3
[ -x "$python" ] || python=python3
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
failed=0
note() { echo "$@" | tee -a "$out/summary.txt"; }
part() {  # part NAME COMMAND...: its output in NAME.log
  local name=$1 start=$SECONDS code
  shift
  "$@" > "$out/$name.log" 2>&1
  code=$?
  [ $code -eq 0 ] && note "done    $name ($((SECONDS - start)) s)" && return
  failed=1
  note "FAILED  $name, exit code $code: $(tail -1 "$out/$name.log")"
}

{ program elf-bench --version; uname -a; nproc; nvidia-smi; "$python" -c 'import torch; print(torch.__version__)'; } > "$out/machine.txt" 2>&1

for test in $tests; do
  part "$test" env ELF_TEST_DIR="$root/tests" bash -c "$(declare -f program); root=$root; program $test"
done

# ours NAME ARGS...: one JSON line; speed NAME ARGS...: ours and the peer's; sampling: with CUDA graphs, the peer's, and without them.
ours() {
  local name=$1
  shift
  part "ours-$name" bash -c "$(declare -f program); root=$root; program elf-bench speed $* --precision $precision --device $device --json > $out/ours-$name.jsonl"
}
speed() {
  local name=$1
  ours "$@"
  shift
  part "peer-$name" bash -c "$python $root/bench/peer.py $* --precision $precision --device $device > $out/peer-$name.jsonl"
}
sampling() {
  local name=$1
  speed "$@"
  shift
  ours "$name-no-graph" "$@" --set sampling.cuda_graph=false
}
if [ -n "$quick" ]; then
  speed train-nano train --preset nano --batch 4 --length 32 --latent 64 --vocab 500 --steps 2
  sampling sample-nano sample --preset nano --batch 4 --length 32 --latent 64 --vocab 500 --steps 2 --sampling-steps 4
else
  for case in elf-b:64 elf-m:24 elf-l:12; do
    preset=${case%:*} batch=${case#*:}
    speed "train-$preset" train --preset "$preset" --batch "$batch" --length 1024 --steps 5
    for steps in 32 64; do
      sampling "sample-$preset-$steps" sample --preset "$preset" --batch "$batch" --length 1024 --steps 2 --sampling-steps $steps
    done
  done
fi
if command -v nsys > /dev/null; then
  part profile nsys profile -o "$out/profile" --stats=true bash -c "$(declare -f program); root=$root; program elf-bench speed train --preset elf-b --batch 64 --length 1024 --steps 2 --precision $precision --device $device"
fi

"$python" - "$out" <<'PY' | tee -a "$out/summary.txt"
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
def line(path):
    text = path.read_text().strip() if path.exists() else ""
    return json.loads(text.splitlines()[-1]) if text else None
print(f"{'case':27} {'ours':>10} {'peer':>10}  tokens/s  ratio  utilisation  memory MiB (peer)")
for ours in sorted(folder.glob("ours-*.jsonl")):
    name = ours.stem[len("ours-"):]
    a, b = line(ours), line(folder / f"peer-{name}.jsonl")
    if not a:
        continue
    peer = f"{b['tokens_per_second']:10.0f}" if b else " " * 9 + "-"
    ratio = f"{a['tokens_per_second'] / b['tokens_per_second']:6.2f}" if b else "     -"
    print(f"{name:27} {a['tokens_per_second']:10.0f} {peer}          {ratio}  {100 * a['utilisation']:9.1f} %  {a['peak_rss_mib']:.0f} ({b['peak_rss_mib'] if b else '-'})")
PY
exit $failed
