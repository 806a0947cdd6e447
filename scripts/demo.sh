#!/usr/bin/env bash
# From real text to generated text, on this machine: installs what is missing, builds the tools, shows the models that come with the
# project, prepares text that Debian packages carry, trains a small ELF, samples from it and scores what comes out.
#
#   scripts/demo.sh [verses|pronounce|translate] [--quick] [--minutes N] [--out DIR] [--bin DIR]
#
#   verses      clauses of the King James Bible, from noise alone (8 minutes of training; the default)
#   pronounce   German spelling to its pronunciation (5 minutes of training)
#   translate   German to English phrases: 30 minutes by default; needs hours to be good
#   --quick     the same path in about three minutes (once the tools are built): few steps, few samples, poor text
#   --minutes N train for N minutes
#   --out DIR   where everything goes (runs/demo/TASK; with --quick runs/demo/TASK-quick)
#   --bin DIR   use the tools in DIR; install and build nothing
#
# A stage whose inputs have not changed is not run again. Ctrl-C during training saves; the same command goes on.
set -euo pipefail

program=demo
. "$(dirname "$(realpath "$0")")/stages.sh"

task=verses quick=no minutes='' out='' bin=''
while [ $# -gt 0 ]; do
  case $1 in
    verses|pronounce|translate) task=$1 ;;
    --quick) quick=yes ;;
    --minutes|--out|--bin)
      need_value "$@"
      case $1 in --minutes) minutes=$2 ;; --out) out=$2 ;; --bin) bin=$2 ;; esac
      shift ;;
    -h|--help) usage; exit 0 ;;
    *) refuse "what is '$1'? See scripts/demo.sh --help" ;;
  esac
  shift
done
[[ -z $minutes || $minutes =~ ^[0-9]*\.?[0-9]+$ ]] || refuse "--minutes: '$minutes' is not a number"
[ -z "$out" ] || out=$(realpath -m -- "$out")
[ -z "$bin" ] || bin=$(realpath -m -- "$bin")
cd "$(dirname "$(realpath "$0")")/.."

# ------------------------------------------------------------------------------------------------- the stages

make_text() { show_and_run python3 scripts/demo_data.py "$task" --out "$out/text" >&2; }

make_tokenizer() {
  local -a from=("$out/text/train.txt") options=(--model-type word --vocab-size 2003)
  case $task in
    pronounce) from=("$out/text/train.src" "$out/text/train.tgt"); options=(--model-type char --vocab-size 64 --no-dummy-prefix --normalization identity) ;;
    translate) from=("$out/text/train.src" "$out/text/train.tgt"); options=(--model-type unigram --vocab-size 4000) ;;
  esac
  rm -rf "$out/tokenizer"
  tool elf-prepare tokenizer --input "${from[@]}" "${options[@]}" --extra-ids 0 --out "$out/tokenizer"
}

make_datasets() {
  local part
  for part in train valid; do
    if [ "$task" = verses ]; then
      tool elf-prepare corpus --input "$out/text/$part.txt" --tokenizer "$out/tokenizer" --max-length 12 --out "$out/$part.h5"
    else
      tool elf-prepare pairs --source "$out/text/$part.src" --target "$out/text/$part.tgt" --tokenizer "$out/tokenizer" \
        --max-input-length "$input_length" --max-length "$total_length" --long drop --out "$out/$part.h5"
    fi
  done
}

make_table() {
  local kind=svd width=24
  [ "$task" = verses ] || { kind=gaussian; width=16; }
  rm -rf "$out/table"
  tool elf-prepare table --data "$out/train.h5" --kind "$kind" --width "$width" --out "$out/table"
}

train_model() {
  local -a settings=(--set "train.minutes=$minutes" --set "train.steps=$steps")
  [ "$out" = "runs/demo/$task" ] || own_data
  # A run that began with other inputs is put aside, not continued.
  if [ -e "$out/run" ] && [ "$(cat "$out/.done/training-begun" 2>/dev/null)" != "$training_key" ]; then
    say "    its inputs have changed: the former run is kept as $out/run.before"
    rm -rf "$out/run.before"
    mv "$out/run" "$out/run.before"
  fi
  printf '%s\n' "$training_key" > "$out/.done/training-begun"
  tool elf-train --config "configs/nano-$task.yaml" "${settings[@]}" --out "$out/run" --resume auto
}

# Beside the samples lie as many held-out clauses, and as many of shuffled words: distinct-n wants sets of one size.
sample_verses() {
  local sampler w part
  for part in valid shuffled; do
    some_lines "$num_samples" "$out/text/$part.txt" > "$out/samples/$part.txt"
  done
  tool elf-sample --model "$out/run" --num-samples "$num_samples" --seed 1 --format jsonl --output "$out/samples/samples.jsonl"
  for sampler in sde ode; do
    for w in 1 2 3; do
      tool elf-sample --model "$out/run" --num-samples "$num_frontier" --seed 1 --sampler "$sampler" --sc-cfg "$w" \
        --output "$out/samples/$sampler-w$w.txt"
    done
  done
  tool elf-sample --model "$out/run" --num-samples 1 --seed 1 --trajectory "$out/samples/trajectory.jsonl" --output "$out/samples/trajectory.txt"
}

# Without guidance on the input, with the configuration's, and the one of five that agrees best with the others.
sample_pairs() {
  some_lines "$num_samples" "$out/text/valid.src" > "$out/samples/source.txt"
  some_lines "$num_samples" "$out/text/valid.tgt" > "$out/samples/reference.txt"
  tool elf-sample --model "$out/run" --input "$out/samples/source.txt" --seed 1 --cfg 1 --output "$out/samples/plain.txt"
  tool elf-sample --model "$out/run" --input "$out/samples/source.txt" --seed 1 --output "$out/samples/guided.txt"
  tool elf-sample --model "$out/run" --input "$out/samples/source.txt" --seed 1 --num-candidates 5 --output "$out/samples/best.txt"
}

score_verses() {
  local name text train=$out/text/train.txt
  for name in samples valid shuffled {sde,ode}-w{1,2,3}; do
    text=$out/samples/$name.txt
    [ "$name" != samples ] || text=$out/samples/samples.jsonl
    [ "$name" = samples ] || show=no  # the same for each text: shown once
    tool elf-eval ngram --train "$train" --input "$text" --json > "$out/scores/$name.ngram.json"
    tool elf-eval diversity --train "$train" --input "$text" --json > "$out/scores/$name.diversity.json"
  done
  show=yes
}

score_pairs() {
  local name text
  for name in plain guided best copy; do
    text=$out/samples/$name.txt
    [ "$name" = copy ] && text=$out/samples/source.txt
    tool elf-eval match --hyp "$text" --ref "$out/samples/reference.txt" --json > "$out/scores/$name.match.json"
    [ "$task" = pronounce ] || tool elf-eval bleu --hyp "$text" --ref "$out/samples/reference.txt" --json > "$out/scores/$name.bleu.json"
  done
}

# ------------------------------------------------------------------------------------------------- what comes with the project

shipped() { "$bin/elf-sample" "$@" 2> "$out/logs/shipped.log" || { cat "$out/logs/shipped.log" >&2; exit 1; }; }

translate() {  # PHRASE...
  printf '%s\n' "$@" > "$out/logs/phrases.txt"
  shipped --model data/models/nano-de-en --num-candidates 8 --input "$out/logs/phrases.txt" | paste "$out/logs/phrases.txt" - |
    awk -F'\t' '{printf "    %-28s %s\n", $1, $2}'
}

show_shipped() {
  local phrase
  printf '\n%sFirst, two small models that come with the project%s (data/models; what they can do and what not stands in their README.md)\n\n' "$bold" "$plain"
  say "  German to English phrases: echo 'guten Morgen' | elf-sample --model data/models/nano-de-en --input -"
  translate 'guten Tag' 'guten Morgen' 'ich liebe dich' 'einen Brief schreiben' 'eine Entscheidung treffen' 'der Einsatz von Gewalt'
  if [ -t 0 ] && [ -t 1 ]; then
    say "  Your own: a German phrase of up to six words; an empty line, or 20 seconds without one, goes on."
    while printf '    > ' && read -r -t 20 phrase && [ -n "$phrase" ]; do translate "$phrase"; done
    say
  fi
  say "  Clauses in the manner of the King James Bible: elf-sample --model data/models/nano-verses --num-samples 4"
  shipped --model data/models/nano-verses --num-samples 4 --seed 1 | sed 's/^/    /'
  say "  One of them on its way from noise (--trajectory; --watch shows it live):"
  shipped --model data/models/nano-verses --num-samples 1 --seed 1 --trajectory "$out/logs/shipped.jsonl" > "$out/logs/shipped.txt"
  python3 scripts/demo_report.py trajectory "$out/logs/shipped.jsonl"
}

# ------------------------------------------------------------------------------------------------- this demo

began=$SECONDS
if [ -z "$out" ]; then
  out=runs/demo/$task
  [ "$quick" = no ] || out+=-quick
fi
out=${out#"$PWD"/}
case $task-$quick in
  verses-no)  default_steps=0   num_samples=1057 num_frontier=500 ;;
  verses-yes) default_steps=400 num_samples=128  num_frontier=64 ;;
  *-no)       default_steps=0   num_samples=100000 ;;
  *-yes)      default_steps=450 num_samples=200 ;;
esac
default_minutes=0
[ "$quick" = yes ] || default_minutes=$(sed -n 's/^  minutes: *//p' "configs/nano-$task.yaml")
steps=$default_steps length="about a minute"
[ -z "$minutes" ] || steps=0
minutes=${minutes:-$default_minutes}
[ "$steps" != 0 ] || length="$minutes minutes"
input_length=10 total_length=22  # pronounce: at most 10 letters; 11 symbols and an end
[ "$task" != translate ] || { input_length=12; total_length=25; }  # pieces
num_stages=8
[ -z "$bin" ] || num_stages=7
mkdir -p "$out"/{logs,.done,samples,scores}

case $task in
  verses) say "${bold}A small ELF learns to write clauses of the King James Bible.${plain} Everything lies under $out." ;;
  pronounce) say "${bold}A small ELF learns to pronounce German.${plain} Everything lies under $out." ;;
  translate) say "${bold}A small ELF begins to translate German phrases.${plain} It needs hours to be good: --minutes 240. Everything lies under $out." ;;
esac

tools elf-prepare elf-train elf-sample elf-eval
show_shipped

stage text text "Text: taken from Debian packages, cut and cleaned, a fiftieth held out" "about 5 seconds" \
  make_text "$task" @scripts/demo_data.py
stage tokenizer tokenizer "Tokenizer: SentencePiece trained on the text" "a few seconds" \
  make_tokenizer "$task" "@$out/text"
stage datasets valid.h5 "Datasets: text to token ids, in HDF5" "a few seconds" \
  make_datasets "$input_length" "$total_length" "@$out/text" "@$out/tokenizer"
stage table table "Latents: a short vector for each token, from how tokens occur together (verses) or drawn (letters)" "a few seconds" \
  make_table "@$out/train.h5"
training_key=$(fingerprint "$minutes" "$steps" @configs/base/nano.yaml "@configs/nano-$task.yaml" "@$out/train.h5" "@$out/valid.h5" "@$out/tokenizer" "@$out/table")
stage training run/checkpoints/latest "Training: a million parameters learn to denoise the vectors and to read words off them" "$length" \
  train_model "$training_key"
kind=pairs
[ "$task" != verses ] || kind=verses
stage sampling samples "Sampling: from noise to text" "a minute to three" \
  "sample_$kind" "$num_samples" "${num_frontier:-}" "@$out/run/checkpoints" "@$bin/elf-sample" "@$out/text"
stage scoring scores "Scores" "a few seconds" \
  "score_$kind" "@$out/samples" "@$out/text" "@$bin/elf-eval"

stage_name=report stage_log=$out/logs/report.log
python3 scripts/demo_report.py "$task" --dir "$out" > "$out/report.txt"
stage_name=''
say
cat "$out/report.txt"
say "This took $(clock $((SECONDS - began))). The table is kept in $out/report.txt."
