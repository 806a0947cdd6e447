#!/usr/bin/env python3
"""Gen. PPL by elf-eval (the whole program, loading included) against transformers (the computation only) on the same random
GPT-2 at the same batch size: equal values, and how many times faster.

    tests/oracle/eval_gpt2_speed.py --elf-eval build/default/bin/elf-eval [--layers 4 --width 256 --texts 64 --words 150 --threads 2]

Needs torch and transformers. The tokenizer's tables are the project's (data/gpt2).
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast

TABLES = pathlib.Path(__file__).resolve().parent.parent.parent / "data" / "gpt2"
END = 50256


def transformers_ppl(model, tokenizer, texts, batch):
    """As the published code: padded with the end to the longest of the set, batch after batch."""
    ids = tokenizer(texts, truncation=True, max_length=1024)["input_ids"]
    longest = max(map(len, ids))
    rows = torch.tensor([row + [END] * (longest - len(row)) for row in ids])
    nll, count = 0.0, 0
    with torch.no_grad():
        for first in range(0, len(rows), batch):
            part = rows[first:first + batch]
            logits = model(part).logits[:, :-1].transpose(-1, -2)
            losses = torch.nn.functional.cross_entropy(logits, part[:, 1:], reduction="none")
            weight = ((part == END).cumsum(-1) == 1)[:, 1:].float() + (part != END)[:, 1:].float()
            nll += (losses * weight).sum().item()
            count += weight.sum().item()
    return math.exp(nll / count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elf-eval", required=True)
    for name, value in (("layers", 4), ("width", 256), ("texts", 64), ("words", 150), ("threads", 2), ("batch", 8)):
        parser.add_argument("--" + name, type=int, default=value)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    rng = random.Random(0)
    vocabulary = [word for word in json.loads((TABLES / "vocab.json").read_text("utf-8")) if word[1:].isalpha() and word[0] == "\u0120"]
    texts = [" ".join(rng.choice(vocabulary)[1:] for _ in range(rng.randrange(o.words // 2, o.words))) for _ in range(o.texts)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = GPT2LMHeadModel(GPT2Config(n_layer=o.layers, n_embd=o.width, n_head=max(1, o.width // 64))).eval()
        model.save_pretrained(folder / "model")
        tokenizer = GPT2TokenizerFast(vocab_file=str(TABLES / "vocab.json"), merges_file=str(TABLES / "merges.txt"))
        (folder / "texts.txt").write_text("".join(text + "\n" for text in texts), "utf-8")
        command = [o.elf_eval, "genppl", "--input", folder / "texts.txt", "--scorer", folder / "model", "--json", "--scorer-batch",
                   str(o.batch), "--threads", str(o.threads)]
        transformers_ppl(model, tokenizer, texts[:o.batch], o.batch)  # warm
        for _ in range(3):
            start = time.perf_counter()
            theirs = transformers_ppl(model, tokenizer, texts, o.batch)
            middle = time.perf_counter()
            record = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            end = time.perf_counter()
            print(f"transformers {middle - start:.2f} s, elf-eval {end - middle:.2f} s, {(middle - start) / (end - middle):.2f} times; "
                  f"PPL {theirs:.6f} and {record['ppl']:.6f}, relative difference {abs(theirs / record['ppl'] - 1):.1e}")


main()
