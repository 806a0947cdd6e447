#!/usr/bin/env python3
"""MAUVE of random features by the package mauve-text, for tests/eval/mauve_test.cpp.

    python3 tests/oracle/eval_mauve.py            writes tests/golden/eval/mauve.json

Needs: mauve-text==0.4.0 faiss-cpu scikit-learn. Not run by the tests; its output is committed.
"""
import json
import pathlib

import mauve
import numpy

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "eval"


def case(name, p, q, clusters):
    result = mauve.compute_mauve(p_features=p, q_features=q, num_buckets=clusters, verbose=False)
    return {"name": name, "p": p.tolist(), "q": q.tolist(), "clusters": result.num_buckets,
            "p_counts": (result.p_hist * len(p)).round(6).tolist(), "q_counts": (result.q_hist * len(q)).round(6).tolist(),
            "mauve": result.mauve, "mauve_star": result.mauve_star, "frontier_integral": result.frontier_integral}


def main():
    rng = numpy.random.default_rng(7)
    centres = rng.normal(size=(6, 5)) * 4
    draw = lambda shares, count: numpy.round(
        centres[rng.choice(6, size=count, p=shares)] + 0.05 * rng.normal(size=(count, 5)), 4).astype("float32")
    even, skewed, other = [1 / 6] * 6, [0.4, 0.3, 0.1, 0.1, 0.05, 0.05], [0, 0, 0, 0.5, 0.25, 0.25]
    cases = [case("alike", draw(even, 40), draw(even, 40), 6), case("skewed", draw(even, 60), draw(skewed, 45), 6),
             case("apart", draw([0.5, 0.5, 0, 0, 0, 0], 30), draw(other, 30), "auto")]
    (GOLDEN / "mauve.json").write_text(json.dumps({"mauve_version": mauve.__version__ if hasattr(mauve, "__version__") else "0.4.0",
                                                   "cases": cases}, separators=(",", ":"), default=float) + "\n", "utf-8")


main()
