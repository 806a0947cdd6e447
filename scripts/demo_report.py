#!/usr/bin/env python3
"""Prints the table that closes scripts/demo.sh, from the files its stages left in DIR: demo_report.py TASK --dir DIR
or what one sample read as on its way: demo_report.py trajectory FILE.jsonl"""
import argparse
import json
import pathlib


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def read_lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def heading(text):
    print(f"{text}\n{'-' * len(text)}")


def table(rows):
    """Rows of strings; the first column to the left, the others to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) if k == 0 else cell.rjust(width)
                               for k, (cell, width) in enumerate(zip(row, widths))).rstrip())
    print()


def columns(rows):
    """Rows of strings, all to the left."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    print()


def percent(share):
    return f"{100 * share:.1f} %"


def training(folder):
    lines = read_jsonl(folder / "run" / "metrics.jsonl")
    steps = [line for line in lines if "loss" in line]
    valid = [line for line in lines if "valid_loss" in line]
    heading("Training")
    last = steps[-1]
    speed = sorted(line["tokens_per_second"] for line in steps)[len(steps) // 2]
    rows = [["steps", f"{last['step']:,} ({last['epoch']:.1f} epochs), {speed:,.0f} tokens a second"]]
    if valid:
        end = valid[-1]
        rows += [["held-out loss", f"{end['valid_loss']:.4f} = mean over {end['valid_rows']:,} texts"],
                 ["  denoise term", f"{end['valid_l2_loss']:.4f} (squared error of the velocity)"],
                 ["  decode term", f"{end['valid_ce_loss']:.4f} (cross-entropy, nats a token)"],
                 ["held-out decode accuracy", percent(end["valid_accuracy"])]]
    columns(rows)


# ---------------------------------------------------------------------------------------------------- verses

def score_row(folder, name, title):
    ngram = read_json(folder / "scores" / f"{name}.ngram.json")
    diverse = read_json(folder / "scores" / f"{name}.diversity.json")
    return [title, f"{ngram['perplexity']:.1f}", f"{diverse['corpus_entropy']:.2f}", f"{diverse['distinct'][1]:.2f}",
            percent(diverse["new_trigrams"]), percent(diverse["exact_copies"]), f"{diverse['samples']:,}"]


def verses(folder):
    heading("Scores: what was generated, beside real text and beside nonsense of the same words")
    table([["", "perplexity", "entropy", "distinct-2", "new trigrams", "exact copies", "texts"],
           score_row(folder, "samples", "generated"),
           score_row(folder, "valid", "real, held out"),
           score_row(folder, "shuffled", "the same, words shuffled")])
    print("  perplexity: under a trigram model of the training text, low = likely. entropy: of all words, in nats; read the two together,\n"
          "  as dull repetition is likely too. new trigrams, exact copies: share that the training text does not, does hold.\n")

    heading("Samples (the first eight, not chosen)")
    for record in read_jsonl(folder / "samples" / "samples.jsonl")[:8]:
        print(f"  {record['text']}")
    print()

    heading("A frontier in miniature: perplexity / entropy of one model, sampled in six ways")
    rows = [["", *(f"guidance {w}" for w in (1, 2, 3))]]
    for sampler in ("ode", "sde"):
        cells = []
        for w in (1, 2, 3):
            row = score_row(folder, f"{sampler}-w{w}", "")
            cells.append(f"{row[1]} / {row[2]}")
        rows.append([sampler.upper(), *cells])
    table(rows)
    print(f"  {row[6]} samples each; the entropy of fewer texts is a little lower.\n")

    heading("From noise to text: what one sample would read as, on its way")
    trajectory(folder / "samples" / "trajectory.jsonl")


def trajectory(path, shown=8):
    steps = read_jsonl(path)
    picked = [steps[round(k * (len(steps) - 1) / (shown - 1))] for k in range(min(shown, len(steps)))]
    for step in picked:
        print(f"  t = {step['t']:.2f}  {step['text']}")
    print()


# --------------------------------------------------------------------------------------------------- pairs

def pairs(folder, task):
    names = {"plain": "without guidance", "guided": "with guidance", "best": "with guidance, one of five", "copy": "copying the input"}
    heading("Scores on held-out inputs")
    rows = [["", "exact match", "character error rate"] + ([] if task == "pronounce" else ["BLEU"])]
    for name, title in names.items():
        score = read_json(folder / "scores" / f"{name}.match.json")
        row = [title, percent(score["exact"]), percent(score["cer"])]
        if task != "pronounce":
            row.append(f"{read_json(folder / 'scores' / f'{name}.bleu.json')['score']:.2f}")
        rows.append(row)
    table(rows)
    print(f"  {score['pairs']:,} inputs; no input and no answer among them occurs in training. One of five: that which agrees best with the others.\n")

    heading("Examples (evenly over the held-out inputs, not chosen)")
    source, right, made = (read_lines(folder / "samples" / name) for name in ("source.txt", "reference.txt", "best.txt"))
    rows = [["input", "right", "generated", ""]]
    for k in range(0, len(source), max(1, len(source) // 12)):
        rows.append([source[k], right[k], made[k], "" if made[k] == right[k] else "differs"])
    columns(rows)


def where_and_next(folder, task):
    heading("Where everything lies, and what to type next")
    given = "--num-samples 20 --seed 7" if task == "verses" else "--input -"
    typed = {"verses": "", "pronounce": "echo wanderlust | ", "translate": "echo 'ein neues Haus' | "}[task]
    longer = 60 if task != "translate" else 240
    columns([[f"{folder}/run", "the trained model, its log.txt, metrics.jsonl and checkpoints"],
             [f"{folder}/text, *.h5, tokenizer, table", "what it was trained on"],
             [f"{folder}/samples, scores", "what it wrote, and how that was scored"]])
    other = "verses" if task == "pronounce" else "pronounce"
    columns([["more of the same", f"{typed}build/default/bin/elf-sample --model {folder}/run {given}"],
             ["train for longer", f"scripts/demo.sh {task} --minutes {longer} --out runs/demo/{task}-long"],
             ["another task", f"scripts/demo.sh {other}"],
             ["your own text", 'README.md, "Your own text"']])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["verses", "pronounce", "translate", "trajectory"])
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--dir", type=pathlib.Path)
    place.add_argument("file", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.task == "trajectory":
        trajectory(arguments.file)
        return
    training(arguments.dir)
    if arguments.task == "verses":
        verses(arguments.dir)
    else:
        pairs(arguments.dir, arguments.task)
    where_and_next(arguments.dir, arguments.task)


if __name__ == "__main__":
    main()
