#!/usr/bin/env python3
"""Makes the demo's text files from texts that Debian packages carry. Needs nothing but Python's standard library.

    demo_data.py verses    --out DIR    clauses of the King James Bible (packages bible-kjv, bible-kjv-text)
    demo_data.py pronounce --out DIR    German words and their pronunciation (package dict-freedict-deu-eng)
    demo_data.py translate --out DIR    German phrases and their English (the same dictionary)

verses writes train.txt, valid.txt (one clause a line) and shuffled.txt: the held-out clauses with their words shuffled over the
whole held-out text, a floor for every score that looks at word order. The others write train.src, train.tgt, valid.src, valid.tgt.

What is held out is decided by a digest of the text itself (MD5 mod 50), never by order or by a generator: the same packages give the
same files, byte for byte. Nothing that is held out occurs in training, which is checked before anything is written.
"""
import argparse
import collections
import gzip
import hashlib
import os
import pathlib
import re
import subprocess
import sys

DICTIONARY = "/usr/share/dictd/freedict-deu-eng.dict.dz"
HELD_OUT_ONE_IN = 50
LETTERS = "a-zäöüß"


def fail(message):
    sys.exit(f"demo_data: {message}")


def digest(text):
    return int(hashlib.md5(text.encode()).hexdigest(), 16)


def held_out(text):
    return digest(text) % HELD_OUT_ONE_IN == 0


def write_lines(path, lines):
    """Whole or not at all: written under another name, then renamed."""
    temporary = path.with_name(path.name + ".part")
    with open(temporary, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)
    os.replace(temporary, path)


# ---------------------------------------------------------------------------------------------------- verses

def bible_verses():
    try:
        done = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        fail(f"the program `bible` cannot be run ({error}); install the Debian packages bible-kjv and bible-kjv-text")
    verses = [line.split(" ", 1)[1] for line in done.stdout.decode("latin-1").splitlines() if " " in line]
    if len(verses) < 31_000:
        fail(f"`bible -f gen1:1-rev22:21` gave {len(verses)} verses, expected 31,102; install the Debian package bible-kjv-text again")
    return verses


def clauses_of(verses):
    clauses = []
    for verse in verses:
        for clause in re.split(r"[.,:;?!]", re.sub(r"[()\[\]]", "", verse.lower())):
            words = clause.split()
            if 3 <= len(words) <= 14:
                clauses.append(words)
    return clauses


def make_verses(out):
    clauses = clauses_of(bible_verses())
    counts = collections.Counter(word for words in clauses for word in words)
    common = {word for word, _ in counts.most_common(2000)}  # equally common words: the one that comes first in the text
    kept = dict.fromkeys(" ".join(words) for words in clauses if len(words) <= 11 and common.issuperset(words))
    train = [clause for clause in kept if not held_out(clause)]
    valid = [clause for clause in kept if held_out(clause)]
    check_no_leak(train, valid)
    write_lines(out / "train.txt", train)
    write_lines(out / "valid.txt", valid)
    write_lines(out / "shuffled.txt", shuffled(valid))
    return len(train), len(valid)


def shuffled(clauses):
    """The same words and the same lengths, in an order that a digest of the place decides."""
    words = " ".join(clauses).split()
    words = iter([word for _, word in sorted((digest(f"shuffle {k}"), word) for k, word in enumerate(words))])
    return [" ".join(next(words) for _ in clause.split()) for clause in clauses]


# -------------------------------------------------------------------------------------------- pronunciations

def dictionary_lines():
    try:
        with gzip.open(DICTIONARY, "rt", encoding="utf-8") as file:  # dictzip is gzip with an index
            return file.read().split("\n")
    except OSError as error:
        fail(f"{DICTIONARY} cannot be read ({error}); install the Debian package dict-freedict-deu-eng")


def make_pronounce(out):
    sounds = {}  # spelling in lower case -> the first pronunciation given
    for line in dictionary_lines():
        match = re.match(r"(\S+) /([^/]+)/", line)
        if match and re.fullmatch(f"[{LETTERS}]+", match[1].lower()):
            sounds.setdefault(match[1].lower(), re.sub("[ˈˌ]", "", match[2]))
    counts = collections.Counter(symbol for sound in sounds.values() for symbol in sound)
    symbols = {symbol for symbol, count in counts.items() if count >= 20 and symbol.isalpha()}
    pairs = [(word, sound) for word, sound in sounds.items()
             if 3 <= len(word) <= 10 and len(sound) <= 11 and symbols.issuperset(sound)]
    return write_pairs(out, pairs)


# ----------------------------------------------------------------------------------------------- translation

def first_alternative(text):
    text = re.sub(r"\([^)]*\)|\[[^\]]*\]|<[^>]*>|\{[^}]*\}", " ", text)  # remarks
    text = re.split(r"[,;/]", text)[0]
    return " ".join(text.split())


def is_short(text):
    """What a small model can hold: with few exceptions at most 12 pieces of a vocabulary of 4,000."""
    return 1 <= len(text.split()) <= 6 and len(text) <= 36


def make_translate(out):
    pairs = {}
    for line in dictionary_lines():
        match = re.match(r'\s*"(.*)"\s+- (.*)$', line)
        if match:
            german, english = first_alternative(match[1]), first_alternative(match[2])
            if is_short(german) and is_short(english):
                pairs.setdefault(german, english)
    return write_pairs(out, list(pairs.items()))


def write_pairs(out, pairs):
    """A pair is held out by its source; training keeps neither a source nor a target of those."""
    valid = [pair for pair in pairs if held_out(pair[0])]
    targets = {target for _, target in valid}
    train = [pair for pair in pairs if not held_out(pair[0]) and pair[1] not in targets]
    for side in (0, 1):
        check_no_leak([pair[side] for pair in train], [pair[side] for pair in valid])
    for name, part in (("train", train), ("valid", valid)):
        write_lines(out / f"{name}.src", [source for source, _ in part])
        write_lines(out / f"{name}.tgt", [target for _, target in part])
    return len(train), len(valid)


def check_no_leak(train, valid):
    both = set(train) & set(valid)
    if both or not train or not valid:
        fail(f"{len(train)} training and {len(valid)} held-out texts, {len(both)} in both: expected some, and none in both")


TASKS = {"verses": (make_verses, "clauses"), "pronounce": (make_pronounce, "words"), "translate": (make_translate, "phrases")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for the text files (made when missing)")
    arguments = parser.parse_args()
    make, what = TASKS[arguments.task]
    arguments.out.mkdir(parents=True, exist_ok=True)
    train, valid = make(arguments.out)
    print(f"{train:,} {what} to train on, {valid:,} held out; none in both")


if __name__ == "__main__":
    main()
