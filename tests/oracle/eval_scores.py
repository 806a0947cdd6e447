#!/usr/bin/env python3
"""Scores of the published packages beyond those of golden/eval/bleu.json and rouge.json, on the texts of those files.

    python3 tests/oracle/eval_scores.py            writes tests/golden/eval/scores.json

Needs: sacrebleu==2.6.0 rouge_score==0.1.2 numpy. Not run by the tests; its output is committed.
"""
import json
import pathlib

import numpy
import sacrebleu
from rouge_score import rouge_scorer, scoring
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "eval"
CONFIGS = {
    "chrF2": (CHRF, {}),
    "chrF2++": (CHRF, {"word_order": 2}),
    "chrF_lc_space": (CHRF, {"lowercase": True, "whitespace": True}),
    "chrF_eps": (CHRF, {"eps_smoothing": True, "word_order": 2}),
    "chrF1_3": (CHRF, {"char_order": 3, "beta": 1}),
    "TER": (TER, {}),
    "TER_normalized": (TER, {"normalized": True, "case_sensitive": True}),
    "TER_no_punct": (TER, {"no_punct": True}),
    "TER_asian": (TER, {"normalized": True, "no_punct": True, "asian_support": True}),
}
# Long, shuffled, and doubled texts: many moves, the band, unequal lengths.
EXTRA = [
    ("moves", ["d e f a b c", "the b a c", "one two three four five six seven eight nine ten eleven twelve"],
     [["a b c d e f", "a b c the", "seven eight nine ten eleven twelve one two three four five six"]]),
    ("lengths", ["a", " ".join("w%d" % (i % 7) for i in range(120)), "", "b b b b b b b b"],
     [[" ".join("w%d" % i for i in range(80)), " ".join("w%d" % (i % 5) for i in range(60)), "x y", "b"]]),
    ("asian", ["今天是个坏天气，真的！", "カタカナとひらがな。", "5,000 yen's worth (円) 3-4"],
     [["今天是个好天气。", "ひらがなとカタカナ、", "5000 yen 's worth ( 円 ) 3 - 4"]]),
    ("long_shuffle", [" ".join("t%d" % ((i * 37) % 101) for i in range(101))],
     [[" ".join("t%d" % i for i in range(101))]]),
]


def score_of(kind, options, hypotheses, references):
    metric = kind(**options)
    score = metric.corpus_score(hypotheses, references)
    sentences = []
    for i, hypothesis in enumerate(hypotheses):
        present = [stream[i] for stream in references if stream[i] is not None]
        sentences.append(metric.sentence_score(hypothesis, present).score)
    return {"score": score.score, "name": score.name, "signature": str(metric.get_signature()), "sentences": sentences}


def bootstrap(kind, options, hypotheses, references):
    metric = kind(**options)
    score = metric.corpus_score(hypotheses, references, n_bootstrap=200)
    return {"score": score.score, "mean": score._mean, "half_width": score._ci, "signature": str(metric.get_signature())}


def paired(hypotheses, baseline, references):
    metrics = {"BLEU": BLEU(), "chrF2": CHRF(), "TER": TER()}
    test = PairedTest([("baseline", baseline), ("system", hypotheses)], metrics, references, test_type="bs", n_samples=300)
    signatures, scores = test()
    return {name: {"baseline": scores[name][0].score, "score": scores[name][1].score, "mean": scores[name][1].mean,
                   "half_width": scores[name][1].ci, "p_value": scores[name][1].p_value} for name in metrics}


def rouge_intervals(pairs):
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=True)
    aggregator = scoring.BootstrapAggregator(n_samples=250)
    for pair in pairs:
        aggregator.add_scores(scorer.score(pair["target"], pair["prediction"]))
    numpy.random.seed(12345)
    return {name: {bound: list(getattr(value, bound)) for bound in ("low", "mid", "high")}
            for name, value in aggregator.aggregate().items()}


def main():
    sets = json.loads((GOLDEN / "bleu.json").read_text("utf-8"))["sets"]
    everything = [(s["name"], s["hypotheses"], s["references"]) for s in sets] + EXTRA
    result = {"sacrebleu_version": sacrebleu.__version__, "configs": {k: v[1] for k, v in CONFIGS.items()},
              "extra": [{"name": n, "hypotheses": h, "references": r} for n, h, r in EXTRA], "results": {}}
    for name, hypotheses, references in everything:
        result["results"][name] = {key: score_of(kind, options, hypotheses, references)
                                   for key, (kind, options) in CONFIGS.items()}
        result["results"][name]["bleu_sentences"] = [
            BLEU(effective_order=True).sentence_score(h, [s[i] for s in references if s[i] is not None]).score
            for i, h in enumerate(hypotheses)]
    # One corpus of all sets with one plain reference, for resampling; every fifth without its last word, they are the baseline.
    single = [(h, r[0]) for _, h, r in everything if len(r) == 1 and None not in r[0]]
    hypotheses = [text for h, _ in single for text in h]
    references = [[text for _, r in single for text in r]]
    baseline = [" ".join(text.split()[:-1]) if i % 5 == 0 else text for i, text in enumerate(hypotheses)]
    result["bootstrap"] = {"BLEU": bootstrap(BLEU, {}, hypotheses, references),
                           "chrF2": bootstrap(CHRF, {}, hypotheses, references),
                           "TER": bootstrap(TER, {}, hypotheses, references)}
    result["paired"] = paired(hypotheses, baseline, references)
    result["rouge_intervals"] = rouge_intervals(json.loads((GOLDEN / "rouge.json").read_text("utf-8"))["pairs"])
    generator = numpy.random.default_rng(12345)
    result["numpy_choice"] = {str(n): generator.choice(n, size=6).tolist() for n in (1, 2, 7, 1000, 70000)}
    (GOLDEN / "scores.json").write_text(json.dumps(result, ensure_ascii=False, separators=(",", ":"), default=float) + "\n", "utf-8")


main()
