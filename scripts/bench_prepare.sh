#!/usr/bin/env bash
# How fast elf-prepare tokenises, beside spm_encode of Debian's package sentencepiece on the same file in the same run:
#   scripts/bench_prepare.sh TEXT TOKENIZER [REPEATS]
# One thread of spm_encode, one and two threads of elf-prepare corpus, in turns; prints the medians in seconds, lines/s, MB/s and the ratio.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 2; }
text=$1 tokenizer=$2 repeats=${3:-3}
prepare=${ELF_PREPARE:-$(dirname "$0")/../build/default/bin/elf-prepare}
model=$tokenizer; [ ! -d "$model" ] || model=$model/spiece.model
command -v spm_encode >/dev/null || { echo 'bench_prepare: spm_encode is missing: apt-get install sentencepiece' >&2; exit 2; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat "$text" > /dev/null     # both read it from memory

seconds() { local start; start=$(date +%s.%N); "$@" > /dev/null 2> "$work/err" || { cat "$work/err" >&2; exit 1; }; echo "$(date +%s.%N) $start" | awk '{ print $1 - $2 }'; }
spm() { spm_encode --model="$model" --output_format=id < "$text" > "$work/ids"; }
ours() { "$prepare" corpus --input "$text" --tokenizer "$tokenizer" --max-length 1024 --out "$work/$1.h5" --threads "$1" --allow-unk; }
for _ in $(seq "$repeats"); do
  seconds spm >> "$work/t_spm"; seconds ours 1 >> "$work/t_1"; seconds ours 2 >> "$work/t_2"
done
cmp "$work/1.h5" "$work/2.h5"
median() { sort -g "$1" | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
base=$(median "$work/t_spm") lines=$(wc -l < "$text") bytes=$(wc -c < "$text")
for name in spm 1 2; do
  label=$([ $name = spm ] && echo 'spm_encode, 1 thread' || echo "elf-prepare, $name thread(s)")
  median "$work/t_$name" | awk -v l="$label" -v n="$lines" -v b="$bytes" -v base="$base" '{ printf "%-25s %7.2f s %9.0f lines/s %7.2f MB/s  x %.2f\n", l, $1, n / $1, b / $1 / 1e6, base / $1 }'
done
