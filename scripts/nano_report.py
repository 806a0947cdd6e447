#!/usr/bin/env python3
"""Prints the tables of scripts/score_nano.sh from the files its stages left in DIR: nano_report.py NAME --dir DIR"""
import argparse
import pathlib

from demo_report import columns, percent, read_json, read_lines, table

PAIRS = {"sde": "translated", "eight": "the one of eight that agrees best", "unguided": "the same without guidance", "copy": "copying the German", "nearest": "the nearest training pair",
         "words": "word by word (IBM model 1, bigrams)", "learned": "training pairs, as many"}
VERSES = {"sde": "generated", "sde16": "the same in 16 steps", "ode": "the same by ODE", "valid": "real, held out",
            "shuffled": "the same, words shuffled", "trigrams": "drawn from a trigram model"}


def phrases(folder):
    rows = [["", "BLEU", "chrF2", "exact match", "character error rate"]]
    for name, title in PAIRS.items():
        bleu, match = (read_json(folder / "scores" / f"{name}.{kind}.json") for kind in ("bleu", "match"))
        rows.append([title, f"{bleu['score']:.1f}", f"{bleu['chrf']['score']:.1f}", percent(match["exact"]), percent(match["cer"])])
    table(rows)
    count = len(read_lines(folder / "text" / "valid.src"))
    print(f"  {count} held-out phrases of two words and more, all in lower case; the last row is what it has learned by heart.\n")
    texts = [read_lines(path) for path in (folder / "text/valid.src", folder / "texts/sde.txt", folder / "text/valid.tgt")]
    print("Every 40th of them: the German, what it made of it, the dictionary's English\n")
    columns([list(row) for row in list(zip(*texts))[::40]])


def verses(folder):
    rows = [["", "perplexity", "entropy", "distinct-2", "new trigrams", "exact copies", "words a text"]]
    for name, title in VERSES.items():
        ngram, diverse = (read_json(folder / "scores" / f"{name}.{kind}.json") for kind in ("ngram", "diversity"))
        rows.append([title, f"{ngram['perplexity']:.1f}", f"{diverse['corpus_entropy']:.2f}", f"{diverse['distinct'][1]:.2f}",
                     percent(diverse["new_trigrams"]), percent(diverse["exact_copies"]), f"{diverse['mean_length']:.1f}"])
    table(rows)
    print(f"  {len(read_lines(folder / 'text' / 'valid.txt')):,} texts a row. perplexity: under a trigram model of the training text, which favours what is drawn from one;\n"
          "  entropy: of all words, in nats. new trigrams, exact copies: share that the training text does not, does hold.\n")
    print("The first twelve samples\n")
    for line in read_lines(folder / "texts/sde.txt")[:12]:
        print(f"  {line}")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=("nano-de-en", "nano-verses"))
    parser.add_argument("--dir", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    (phrases if arguments.name == "nano-de-en" else verses)(arguments.dir)


if __name__ == "__main__":
    main()
