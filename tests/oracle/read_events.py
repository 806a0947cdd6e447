#!/usr/bin/env python3
"""Reads a run's event files with TensorBoard's own reader and compares them with metrics.jsonl: each figure of each step
once, with its value. Needs the PyPI package tensorboard.

    read_events.py RUN_FOLDER
"""
import collections
import json
import math
import pathlib
import sys

from tensorboard.backend.event_processing import event_accumulator


def main():
    run = pathlib.Path(sys.argv[1])
    events = event_accumulator.EventAccumulator(str(run / "tensorboard"),
                                                size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    found = collections.defaultdict(list)
    for tag in events.Tags()["scalars"]:
        for event in events.Scalars(tag):
            found[tag].append((event.step, event.value))
    expected = collections.defaultdict(list)
    for line in map(json.loads, open(run / "metrics.jsonl")):
        for name, value in line.items():
            if name == "step" or value is None:
                continue
            group, _, rest = name.partition("_")
            tag = f"{group}/{rest}" if group in ("valid", "sample") else f"train/{name}"
            expected[tag].append((line["step"], value))
    assert set(found) == set(expected), set(found) ^ set(expected)
    for tag, pairs in expected.items():
        assert [step for step, _ in found[tag]] == [step for step, _ in pairs], tag
        assert all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
                   for (_, a), (_, b) in zip(found[tag], pairs)), tag
    texts = events.Tags()["tensors"]
    configuration = events.Tensors("configuration")[0].tensor_proto.string_val[0].decode()
    assert "global_batch_size" in configuration
    print(f"{len(found)} scalars, {sum(map(len, found.values()))} values, texts: {', '.join(texts)}")


if __name__ == "__main__":
    main()
