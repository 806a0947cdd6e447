#!/usr/bin/env bash
# The figures of a model's card (data/models/NAME/README.md), made from the files of the model: samples, baselines, scores, a table.
#
#   scripts/score_nano.sh nano-de-en|nano-verses [--model DIR] [--out DIR] [--bin DIR]
#
#   --model DIR  score this one (data/models/NAME)
#   --out DIR    where everything goes (runs/nano/NAME-scores)
#   --bin DIR    use the tools in DIR; install and build nothing
#
# Two minutes. The text is that of scripts/train_nano.sh, from the same Debian packages.
set -euo pipefail

program=score_nano
. "$(dirname "$(realpath "$0")")/stages.sh"

name='' model='' out='' bin=''
while [ $# -gt 0 ]; do
  case $1 in
    nano-de-en|nano-verses) name=$1 ;;
    --model|--out|--bin)
      need_value "$@"
      case $1 in --model) model=$(realpath -m -- "$2") ;; --out) out=$(realpath -m -- "$2") ;; --bin) bin=$(realpath -m -- "$2") ;; esac
      shift ;;
    -h|--help) usage; exit 0 ;;
    *) refuse "what is '$1'? See scripts/score_nano.sh --help" ;;
  esac
  shift
done
[ -n "$name" ] || refuse "which model: nano-de-en or nano-verses?"
cd "$(dirname "$(realpath "$0")")/.."
model=${model:-data/models/$name}
out=${out:-runs/nano/$name-scores}
out=${out#"$PWD"/}
[ -e "$model/model.json" ] || refuse "$model holds no model: scripts/train_nano.sh $name makes one"

# ------------------------------------------------------------------------------------------------- the stages

make_text() { nano_text "$name"; }

baseline() { show_and_run python3 scripts/nano_baselines.py "$1" "$out/text" "${@:3}" > "$out/texts/$2.txt"; }

make_phrases() {
  local side count
  count=$(wc -l < "$out/text/valid.src")
  for side in src tgt; do some_lines "$count" "$out/text/train.$side" > "$out/texts/train.$side"; done
  tool elf-sample --model "$model" --input "$out/text/valid.src" --seed 1 --output "$out/texts/sde.txt"
  tool elf-sample --model "$model" --input "$out/text/valid.src" --seed 1 --num-candidates 8 --output "$out/texts/eight.txt"
  tool elf-sample --model "$model" --input "$out/text/valid.src" --seed 1 --cfg 1 --output "$out/texts/unguided.txt"
  tool elf-sample --model "$model" --input "$out/texts/train.src" --seed 1 --output "$out/texts/learned.txt"
  cp "$out/text/valid.src" "$out/texts/copy.txt"
  baseline nearest nearest
  baseline words words
}

score_phrases() {
  local text reference
  for text in sde eight unguided learned copy nearest words; do
    reference=$out/text/valid.tgt
    [ "$text" != learned ] || reference=$out/texts/train.tgt
    tool elf-eval bleu --metrics bleu,chrf --hyp "$out/texts/$text.txt" --ref "$reference" --json > "$out/scores/$text.bleu.json"
    tool elf-eval match --hyp "$out/texts/$text.txt" --ref "$reference" --json > "$out/scores/$text.match.json"
    show=no  # the same for each text: shown once
  done
  show=yes
}

make_verses() {
  local count; count=$(wc -l < "$out/text/valid.txt")
  tool elf-sample --model "$model" --num-samples "$count" --seed 1 --output "$out/texts/sde.txt"
  tool elf-sample --model "$model" --num-samples "$count" --seed 1 --steps 16 --output "$out/texts/sde16.txt"
  tool elf-sample --model "$model" --num-samples "$count" --seed 1 --sampler ode --output "$out/texts/ode.txt"
  cp "$out"/text/{valid,shuffled}.txt "$out/texts/"
  baseline trigrams trigrams "$count"
}

score_verses() {
  local text train=$out/text/train.txt
  for text in sde sde16 ode valid shuffled trigrams; do
    tool elf-eval ngram --train "$train" --input "$out/texts/$text.txt" --json > "$out/scores/$text.ngram.json"
    tool elf-eval diversity --train "$train" --input "$out/texts/$text.txt" --json > "$out/scores/$text.diversity.json"
    show=no
  done
  show=yes
}

num_stages=4
[ -z "$bin" ] || num_stages=3
mkdir -p "$out"/{logs,.done,texts,scores}
tools elf-sample elf-eval

kind=phrases
[ "$name" = nano-de-en ] || kind=verses
stage text text "Text: taken from Debian packages, cut and cleaned, a part held out" "about 20 seconds" make_text "$name" @scripts/nano_data.py @scripts/nano_baselines.py @scripts/demo_data.py
stage texts texts "Samples, and what the baselines write" "a minute or two" "make_$kind" "@$model" "@$out/text" @scripts/nano_baselines.py
stage scores scores "Scores" "a few seconds" "score_$kind" "@$out/texts" "@$out/text"
say
python3 scripts/nano_report.py "$name" --dir "$out" | tee "$out/report.txt"
