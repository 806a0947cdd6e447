#!/usr/bin/env bash
# Trains a model of data/models from nothing, on one thread: text from Debian packages, tokenizer, datasets, table, training, export.
#
#   scripts/train_nano.sh nano-de-en|nano-verses [--out DIR] [--bin DIR] [--install]
#
#   --out DIR   where everything goes (runs/nano/NAME); the model is DIR/model
#   --bin DIR   use the tools in DIR; install and build nothing
#   --install   and put the model into data/models/NAME, where its card stays
#
# About an hour for nano-de-en and half of that for nano-verses, on a core of its own. Ctrl-C saves, the same command goes on from there; on one machine the weights are the same bit for bit
# every time, stopped or not. scripts/score_nano.sh gives the figures of the model's card.
set -euo pipefail

program=train_nano
. "$(dirname "$(realpath "$0")")/stages.sh"

model='' out='' bin='' install=no
while [ $# -gt 0 ]; do
  case $1 in
    nano-de-en|nano-verses) model=$1 ;;
    --out|--bin)
      need_value "$@"
      case $1 in --out) out=$(realpath -m -- "$2") ;; --bin) bin=$(realpath -m -- "$2") ;; esac
      shift ;;
    --install) install=yes ;;
    -h|--help) usage; exit 0 ;;
    *) refuse "what is '$1'? See scripts/train_nano.sh --help" ;;
  esac
  shift
done
[ -n "$model" ] || refuse "which model: nano-de-en or nano-verses?"
cd "$(dirname "$(realpath "$0")")/.."
out=${out:-runs/nano/$model}
out=${out#"$PWD"/}

# ------------------------------------------------------------------------------------------------- the stages

make_text() { nano_text "$model"; }

# Pairs: case is folded, and nearly every word is a piece of its own. Verses: words, as in the demo.
make_tokenizer() {
  local -a options=(--input "$out/text/train.txt" --model-type word --vocab-size 2003)
  [ "$model" = nano-verses ] || options=(--input "$out/text/train.src" "$out/text/train.tgt" --model-type unigram --vocab-size 8000
                                         --soft-vocab-limit --normalization nmt_nfkc_cf --character-coverage 1)
  rm -rf "$out/tokenizer"
  tool elf-prepare tokenizer "${options[@]}" --extra-ids 0 --out "$out/tokenizer"
}

make_datasets() {
  local part
  for part in train valid; do
    if [ "$model" = nano-verses ]; then
      tool elf-prepare corpus --input "$out/text/$part.txt" --tokenizer "$out/tokenizer" --max-length 12 --out "$out/$part.h5"
    else
      tool elf-prepare pairs --source "$out/text/$part.src" --target "$out/text/$part.tgt" --tokenizer "$out/tokenizer" \
        --max-input-length 8 --max-length 16 --long drop --out "$out/$part.h5"
    fi
  done
}

# Of pairs the table is made from both languages mixed, the whole pair being the window, so that words that translate each other get latents
# that are alike.
make_table() {
  local data=$out/train.h5
  local -a options=(--width 24)
  if [ "$model" = nano-de-en ]; then
    data=$out/mixed.h5 options=(--width 48 --window 10 --context-exponent 1)
    tool elf-prepare corpus --input "$out/text/mixed.txt" --tokenizer "$out/tokenizer" --max-length 32 --out "$data"
  fi
  rm -rf "$out/table"
  tool elf-prepare table --data "$data" --kind svd "${options[@]}" --out "$out/table"
}

train_model() {
  local -a settings=()
  [ "$out" = "runs/nano/$model" ] || own_data
  tool elf-train --config "configs/models/$model.yaml" "${settings[@]}" --threads 1 --out "$out/run" --resume auto
}

export_model() {
  rm -rf "$out/model"
  tool elf-convert export "$out/run" --to model-dir --weights ema --precision bf16 --out "$out/model"
}

num_stages=7
[ -z "$bin" ] || num_stages=6
mkdir -p "$out"/{logs,.done}
tools elf-prepare elf-train elf-convert

stage text text "Text: taken from Debian packages, cut and cleaned, a part held out" "about 20 seconds" make_text "$model" @scripts/nano_data.py @scripts/nano_baselines.py @scripts/demo_data.py
stage tokenizer tokenizer "Tokenizer: SentencePiece trained on the text" "a few seconds" make_tokenizer "$model" "@$out/text"
stage datasets valid.h5 "Datasets: text to token ids, in HDF5" "a few seconds" make_datasets "@$out/text" "@$out/tokenizer"
stage table table "Latents: a short vector for each token, from how tokens occur together" "a few seconds" make_table "@$out/train.h5" "@$out/text"
stage training run/checkpoints/latest "Training" "hours; the log tells how long yet" \
  train_model @configs/base/nano.yaml @configs/nano-verses.yaml "@configs/models/$model.yaml" "@$out/train.h5" "@$out/valid.h5" "@$out/tokenizer" "@$out/table"
stage export model "Export: averaged weights in bfloat16, tokenizer and table, in one folder" "a second" export_model "@$out/run/checkpoints/"

if [ "$install" = yes ]; then
  mkdir -p "data/models/$model"
  for part in "$out"/model/*; do
    rm -rf "data/models/$model/${part##*/}"
    cp -r "$part" "data/models/$model/"
  done
fi
say
say "The model is $out/model. Its figures: scripts/score_nano.sh $model --model $out/model"
