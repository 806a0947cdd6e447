#!/usr/bin/env python3
"""What needs no neural network, trained on the same text, to compare the models of data/models with (scripts/score_nano.sh):

    nano_baselines.py nearest  TEXT    for each line of TEXT/valid.src the English of the training pair whose German is most alike
    nano_baselines.py words    TEXT    word by word: IBM model 1 and a bigram model of English, best path of a beam
    nano_baselines.py trigrams TEXT N  N clauses drawn from a trigram model of TEXT/train.txt

TEXT is a folder of nano_data.py; a text a line goes to standard output.
"""
import argparse
import collections
import itertools
import math
import pathlib
import random
import re

from demo_report import read_lines


def tokens(text):
    return re.findall(r"[\w'-]+|[.,:;?!]", text)


def read_pairs(folder, name):
    return [list(map(tokens, read_lines(folder / f"{name}.{side}"))) for side in ("src", "tgt")]


def written(words):
    return re.sub(r" ([.,:;?!])", r"\1", " ".join(words))


# ------------------------------------------------------------------------------------------------- the nearest pair

def letters_of_three(text):
    padded = f"  {text}  "
    return {padded[k:k + 3] for k in range(len(padded) - 2)}


def nearest(folder):
    """By Dice's coefficient of their character trigrams; of equals the first."""
    sources, targets = (read_lines(folder / f"train.{side}") for side in ("src", "tgt"))
    known = [letters_of_three(source) for source in sources]
    places = collections.defaultdict(list)
    for place, grams in enumerate(known):
        for gram in grams:
            places[gram].append(place)
    for source in read_lines(folder / "valid.src"):
        grams = letters_of_three(source)
        common = collections.Counter(itertools.chain.from_iterable(places[gram] for gram in grams))
        best = max(common, key=lambda place: (2 * common[place] / (len(grams) + len(known[place])), -place))
        yield targets[best]


# -------------------------------------------------------------------------------------------------- word by word

def model_one(sources, targets, rounds=8):
    """IBM model 1 by expectation maximisation: p(target word | source word), and how many words a source word gives on average."""
    table = collections.defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts, totals = collections.Counter(), collections.Counter()
        for source, target in zip(sources, targets):
            for word in target:
                weights = [table[given, word] for given in source]
                total = sum(weights)
                for given, weight in zip(source, weights):
                    counts[given, word] += weight / total
                    totals[given] += weight / total
        table = collections.defaultdict(float, {pair: count / totals[pair[0]] for pair, count in counts.items()})
    occurrences = collections.Counter(itertools.chain.from_iterable(sources))
    return table, {given: totals[given] / occurrences[given] for given in totals}


def bigram_model(texts):
    pairs, singles = collections.Counter(), collections.Counter()
    for text in texts:
        for first, second in itertools.pairwise(["<s>", *text, "</s>"]):
            pairs[first, second] += 1
            singles[second] += 1
    followed, kinds = collections.Counter(), collections.Counter()
    for (first, _), count in pairs.items():
        followed[first] += count
        kinds[first] += 1
    total = sum(singles.values())

    def log_probability(first, second):  # Witten and Bell's interpolation
        below = (singles[second] + 0.1) / (total + 0.1 * len(singles))
        return math.log((pairs[first, second] + kinds[first] * below) / (followed[first] + kinds[first]) if followed[first] else below)

    return log_probability


def word_by_word(folder, beam=30, choices=8, bonus=5.0):
    """Each source word gives nothing or one of its likeliest words, in order; unknown words stay as they are. Without a bonus a word the
    bigram model makes everything too short."""
    sources, targets = read_pairs(folder, "train")
    table, fertility = model_one(sources, targets)
    language = bigram_model(targets)
    likeliest = collections.defaultdict(list)
    for (given, word), probability in table.items():
        likeliest[given].append((probability, word))
    for given, words in likeliest.items():
        likeliest[given] = sorted(words, reverse=True)[:choices]
    for source in read_pairs(folder, "valid")[0]:
        paths = [(0.0, ["<s>"])]
        for given in source:
            nothing = min(max(1 - fertility.get(given, 1.0), 0.05), 0.95)
            longer = [(score + math.log(nothing), path) for score, path in paths]
            for probability, word in likeliest.get(given, [(1.0, given)]):
                gain = bonus + math.log((1 - nothing) * max(probability, 1e-9))
                longer += [(score + gain + language(path[-1], word), path + [word]) for score, path in paths]
            paths = sorted(longer, reverse=True)[:beam]
        _, best = max((score + language(path[-1], "</s>"), path) for score, path in paths)
        yield written(best[1:])


# ------------------------------------------------------------------------------------------------------- trigrams

def trigrams(folder, count):
    """Drawn with Witten and Bell's interpolation: from a history seen n times with k different followers one goes to the shorter
    history with probability k / (n + k)."""
    following = collections.defaultdict(list)
    for line in read_lines(folder / "train.txt"):
        words = ["<s>", "<s>", *tokens(line), "</s>"]
        for place in range(2, len(words)):
            for length in (2, 1, 0):
                following[tuple(words[place - length:place])].append(words[place])
    kinds = {history: len(set(words)) for history, words in following.items()}
    draw = random.Random(1)

    def next_word(history):
        seen = following.get(history, [])
        if history and draw.random() * (len(seen) + kinds.get(history, 1)) >= len(seen):
            return next_word(history[1:])
        return draw.choice(seen)

    for _ in range(count):
        words = ["<s>", "<s>"]
        while words[-1] != "</s>":
            words.append(next_word(tuple(words[-2:])))
        yield written(words[2:-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=("nearest", "words", "trigrams"))
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("count", type=int, nargs="?", default=1000)
    arguments = parser.parse_args()
    lines = {"nearest": lambda: nearest(arguments.text), "words": lambda: word_by_word(arguments.text),
             "trigrams": lambda: trigrams(arguments.text, arguments.count)}[arguments.which]()
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
