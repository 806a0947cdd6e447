#!/usr/bin/env python3
"""elf-eval against the published packages, on pairs of texts that are generated on the spot.

    tests/oracle/eval_pairs.py --elf-eval build/default/bin/elf-eval [--pairs 2000] [--seed 1]    compare: no difference over 1e-4
    tests/oracle/eval_pairs.py --elf-eval ... --speed [--pairs 20000]                             how many times faster

Needs sacrebleu 2.6.0 and rouge_score 0.1.2: in this Python, or in the one that the variable ELF_ORACLE_PYTHON names. Without
them it exits with 77, which ctest counts as skipped.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

try:
    import sacrebleu
    from rouge_score import rouge_scorer
    from sacrebleu.metrics import BLEU, CHRF, TER
except ImportError:
    other = os.environ.get("ELF_ORACLE_PYTHON")
    if other and not os.environ.get("ELF_ORACLE_STARTED"):
        os.environ["ELF_ORACLE_STARTED"] = "1"
        os.execv(other, [other, *sys.argv])
    print("skipped: needs sacrebleu and rouge_score")
    sys.exit(77)

TOLERANCE = 1e-4
WORDS = ("the a of and to in was is it for on with as that by at from his her they we running runners runs relational conditional "
         "happily flies dying U.S. e.g. don't it's O'Neill's state-of-the-art 1,000 3.14 50% $5 (see below) \"quoted\" end. what? "
         "yes! no; Straße café naïve Ωmega δοκιμή привет мир 今天 天气 好 สวัสดี नमस्ते emoji😀 &amp; &lt;b&gt; A/B C++ x_y co-op 10-12 "
         "… — “curly” ‘single’ ¿qué? №5 ½ ² ﬁne İstanbul ΣΑΣ l'été d'accord").split(" ")


def text(rng, longest):
    words = [rng.choice(WORDS) for _ in range(rng.randrange(0, longest))]
    if words and rng.random() < 0.3:
        words.append(rng.choice([".", "!", "?", "。"]))
    return rng.choice([" ", " ", " ", "  "]).join(words) + ("  " if rng.random() < 0.02 else "")


def spoilt(rng, words):
    """Another wording: words dropped, replaced, moved, in another case."""
    words = list(words)
    for _ in range(rng.randrange(0, 2 + len(words) // 3)):
        if not words:
            break
        place, kind = rng.randrange(len(words)), rng.randrange(5)
        if kind == 0:
            del words[place]
        elif kind == 1:
            words[place] = rng.choice(WORDS)
        elif kind == 2:
            words.insert(place, rng.choice(WORDS))
        elif kind == 3:
            size = rng.randrange(1, 5)
            part = words[place:place + size]
            del words[place:place + size]
            at = rng.randrange(len(words) + 1)
            words[at:at] = part
        else:
            words[place] = words[place].swapcase()
    return " ".join(words)


def make_pairs(count, seed, longest):
    rng = random.Random(seed)
    references = [text(rng, longest) for _ in range(count)]
    return [spoilt(rng, r.split(" ")) if rng.random() < 0.95 else text(rng, longest) for r in references], references


class Files:
    def __init__(self, folder, hypotheses, references):
        self.hyp, self.ref = folder / "hyp.jsonl", folder / "ref.jsonl"
        for path, texts in ((self.hyp, hypotheses), (self.ref, references)):
            path.write_text("".join(json.dumps({"text": t}, ensure_ascii=False) + "\n" for t in texts), "utf-8")
        self.plain_hyp, self.plain_ref = folder / "hyp.txt", folder / "ref.txt"
        for path, texts in ((self.plain_hyp, hypotheses), (self.plain_ref, references)):
            path.write_text("".join(t.replace("\n", " ") + "\n" for t in texts), "utf-8")


def elf(tool, *arguments):
    done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"elf-eval {arguments[0]}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class Comparison:
    def __init__(self):
        self.worst, self.where, self.count = 0.0, "", 0

    def add(self, where, ours, theirs):
        self.count += 1
        if abs(ours - theirs) > self.worst:
            self.worst, self.where = abs(ours - theirs), f"{where}: {ours} against {theirs}"


def compare_translations(tool, files, folder, hypotheses, references, result):
    sentences = folder / "sentences.jsonl"
    for tokenizer in ("13a", "intl", "char", "zh", "none"):
        for lowercase in (False, True):
            flags = ["--lowercase"] if lowercase else []
            record = elf(tool, "bleu", "--hyp", files.hyp, "--ref", files.ref, "--tokenize", tokenizer, "--json", "--force",
                         "--sentences", sentences, *flags)
            bleu = BLEU(tokenize=tokenizer, lowercase=lowercase)
            score = bleu.corpus_score(hypotheses, [references])
            where = f"BLEU {tokenizer} {'lc' if lowercase else 'cased'}"
            result.add(where, record["score"], score.score)
            for n in range(4):
                assert record["counts"][n] == score.counts[n] and record["totals"][n] == score.totals[n], where
            single = BLEU(tokenize=tokenizer, lowercase=lowercase, effective_order=True)
            for i, line in enumerate(lines_of(sentences)):
                result.add(f"{where}, text {i}", line["bleu"], single.sentence_score(hypotheses[i], [references[i]]).score)
    record = elf(tool, "bleu", "--hyp", files.hyp, "--ref", files.ref, "--metrics", "bleu,chrf,chrf++,ter", "--json", "--force",
                 "--sentences", sentences)
    metrics = {"chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}
    for key, metric in metrics.items():
        result.add(key, record[key]["score"], metric.corpus_score(hypotheses, [references]).score)
        for i, line in enumerate(lines_of(sentences)):
            result.add(f"{key}, text {i}", line[key], metric.sentence_score(hypotheses[i], [references[i]]).score)


def compare_sentencepiece(tool, files, hypotheses, references, result):
    """spm:FILE is BLEU of the model's pieces."""
    try:
        import sentencepiece
    except ImportError:
        return
    model = pathlib.Path(__file__).resolve().parent.parent / "golden" / "tokenizer" / "spiece.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    pieces = lambda texts: [" ".join(processor.EncodeAsPieces(t.rstrip())) for t in texts]
    record = elf(tool, "bleu", "--hyp", files.hyp, "--ref", files.ref, "--tokenize", f"spm:{model}", "--json", "--force")
    result.add("BLEU spm", record["score"], BLEU(tokenize="none").corpus_score(pieces(hypotheses), [pieces(references)]).score)


def compare_rouge(tool, files, folder, hypotheses, references, result):
    sentences = folder / "sentences.jsonl"
    types = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    for stemmer in (False, True):
        elf(tool, "rouge", "--hyp", files.hyp, "--ref", files.ref, "--json", "--sentences", sentences,
            *(["--stemmer"] if stemmer else []))
        scorer = rouge_scorer.RougeScorer(types, use_stemmer=stemmer)
        for i, line in enumerate(lines_of(sentences)):
            score = scorer.score(references[i], hypotheses[i])
            for name in types:
                for figure in ("precision", "recall", "fmeasure"):
                    result.add(f"{name} {figure}, text {i}", line[name][figure], getattr(score[name], figure))


def compare(tool, count, seed):
    hypotheses, references = make_pairs(count, seed, 30)
    rng = random.Random(seed + 1)  # some texts of several lines, for rougeLsum
    for texts in (hypotheses, references):
        for i in range(0, count, 7):
            texts[i] = "".join("\n" if c == " " and rng.random() < 0.2 else c for c in texts[i])
    result = Comparison()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files = Files(folder, hypotheses, references)
        compare_translations(tool, files, folder, hypotheses, references, result)
        compare_sentencepiece(tool, files, hypotheses, references, result)
        compare_rouge(tool, files, folder, hypotheses, references, result)
    print(f"{count} pairs, {result.count} figures; largest difference {result.worst:.3g} {result.where}")
    return result.worst <= TOLERANCE


def timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def speed(tool, count, seed):
    hypotheses, references = make_pairs(count, seed, 40)
    with tempfile.TemporaryDirectory() as name:
        files = Files(pathlib.Path(name), hypotheses, references)
        run = lambda command, *flags: elf(tool, command, "--hyp", files.plain_hyp, "--ref", files.plain_ref, "--json", *flags)
        scorer = {s: rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=s) for s in (False, True)}
        cases = {
            "bleu": (lambda: run("bleu", "--force"), lambda: BLEU().corpus_score(hypotheses, [references])),
            "rouge": (lambda: run("rouge"), lambda: [scorer[False].score(r, h) for r, h in zip(references, hypotheses)]),
            "rouge --stemmer": (lambda: run("rouge", "--stemmer"),
                                lambda: [scorer[True].score(r, h) for r, h in zip(references, hypotheses)]),
        }
        for label, (ours, theirs) in cases.items():
            mine = min(timed(ours), timed(ours))
            package = timed(theirs)
            print(f"{label}: {count} pairs, elf-eval {mine:.2f} s, package {package:.2f} s, {package / mine:.1f} times")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elf-eval", required=True)
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    assert sacrebleu.__version__ == "2.6.0", sacrebleu.__version__
    if options.speed:
        speed(options.elf_eval, options.pairs or 20000, options.seed)
    elif not compare(options.elf_eval, options.pairs or 2000, options.seed):
        sys.exit(1)


main()
