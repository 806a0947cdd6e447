#!/usr/bin/env python3
"""Makes the text files that data/models/nano-de-en was trained on (scripts/train_nano.sh): German words and phrases and their English, from
the dictionary of the package dict-freedict-deu-eng. Needs nothing but Python.

    nano_data.py --out DIR

writes train.src, train.tgt, valid.src, valid.tgt: literal pairs of at most 6 words a side, all of them common; and mixed.txt, for elf-prepare
table: all pairs of three times as many words, each as one line in which the words of both languages alternate in the order of their places,
so that words that translate each other are neighbours.

As in demo_data.py a digest of the text decides what is held out, and nothing that is held out occurs in training.
"""
import argparse
import collections
import pathlib
import re

from demo_data import check_no_leak, dictionary_lines, digest, write_lines
from nano_baselines import model_one

WORD = r"[a-zäöüßéèà'-]+"


LONGEST_PHRASE = 6  # words
GERMAN_WORDS, ENGLISH_WORDS = 3000, 2500
LITERAL = 0.1  # least probability, in IBM model 1, of a word given one of the other side
PHRASES_HELD_OUT_ONE_IN = 12


def without_remarks(text):
    text = re.sub(r"\([^)]*\)|\[[^\]]*\]|<[^>]*>|\{[^}]*\}", " ", text)
    return re.sub(r"\s+([.,;?!])", r"\1", " ".join(text.split()))


def entries(lines):
    """Pairs of the dictionary: examples ("GERMAN"  - ENGLISH), and head words with the line below."""
    for line, below in zip(lines, lines[1:] + [""]):
        example = re.match(r'\s*"(.*)"\s+- (.*)$', line)
        head = re.match(r"(\S.*?) /[^/]+/", line)
        if example:
            yield example[1], example[2]
        elif head and (not below.startswith(" ") or below.startswith(" [")):
            yield head[1], below


def tidy(german, english):
    """Both in lower case, the first translation only; None for what is not words."""
    german, english = without_remarks(german).lower(), without_remarks(english).lower()
    if re.search(r"[.?!]$", german):  # a sentence: it may have commas, and so may its translation
        english = re.split(r";|(?<=[.?!]),", english)[0]
    else:
        english = re.split(r"[,;]", english)[0]
    pair = []
    for text in (german, english):
        text = re.sub(r"\b(etw|jdm|jdn|jds|jd|sth|sb)\.", r"\1", text.strip())
        if not re.fullmatch(rf"{WORD}(,? {WORD})*[.?!]?", text) or len(text.split()) > LONGEST_PHRASE:
            return None
        pair.append(text)
    return tuple(pair)


def words(text):
    return re.findall(WORD, text)


def plain(text):
    return " ".join(words(text))


def dictionary_pairs():
    pairs = {}
    for german, english in entries(dictionary_lines()):
        pair = tidy(german, english)
        if pair and plain(pair[0]) != plain(pair[1]):
            pairs.setdefault(plain(pair[0]), pair)
    return list(pairs.values())


def of_common_words(pairs, german_words, english_words):
    """Words are counted in phrases, so that what a word means can be learned from them."""
    common = []
    for side, number in ((0, german_words), (1, english_words)):
        counts = collections.Counter(word for pair in pairs if " " in pair[0] for word in words(pair[side]))
        common.append({word for word, _ in counts.most_common(number)})
    return [pair for pair in pairs if all(common[side].issuperset(words(pair[side])) for side in (0, 1))]


def literal(pairs, all_pairs):
    """Those in which most words of either side translate one of the other: what can be learned from parts and made of parts. Idioms
    ("das Kind beim Namen nennen", "call a spade a spade") have to be learned by heart."""
    table, _ = model_one(*([words(pair[side]) for pair in all_pairs] for side in (0, 1)), rounds=6)

    def explained(pair):
        german, english = map(words, pair)
        return (sum(max(table[given, word] for given in german) >= LITERAL for word in english) >= 0.75 * len(english)
                and sum(max(table[given, word] for word in english) >= LITERAL for given in german) >= 0.6 * len(german))

    return list(filter(explained, pairs))


def mixed(pair):
    places = [(place / len(side), word) for side in map(words, pair) for place, word in enumerate(side, 1)]
    return " ".join(word for _, word in sorted(places, key=lambda entry: entry[0]))


def make_phrases(out):
    every = dictionary_pairs()
    for_table = of_common_words(every, 3 * GERMAN_WORDS, 3 * ENGLISH_WORDS)
    kept = literal(of_common_words(every, GERMAN_WORDS, ENGLISH_WORDS), for_table)
    valid = [pair for pair in kept if " " in pair[0] and digest(plain(pair[0])) % PHRASES_HELD_OUT_ONE_IN == 0]
    sources, targets = ({plain(pair[side]) for pair in valid} for side in (0, 1))

    def may_be_seen(pair):
        return plain(pair[0]) not in sources and plain(pair[1]) not in targets

    train = list(filter(may_be_seen, kept))
    # Sentences also without their marks, as one types them.
    train += [(plain(german), plain(english)) for german, english in train if re.search(r"[.?!]$", german)]
    for side in (0, 1):
        check_no_leak([plain(pair[side]) for pair in train], [plain(pair[side]) for pair in valid])
    for name, part in (("train", train), ("valid", valid)):
        write_lines(out / f"{name}.src", [german for german, _ in part])
        write_lines(out / f"{name}.tgt", [english for _, english in part])
    write_lines(out / "mixed.txt", [mixed(pair) for pair in for_table if may_be_seen(pair)])
    return len(train), len(valid)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for the text files (made when missing)")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    train, valid = make_phrases(arguments.out)
    print(f"{train:,} pairs to train on, {valid:,} held out; none in both")


if __name__ == "__main__":
    main()
