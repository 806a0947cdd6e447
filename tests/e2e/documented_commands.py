#!/usr/bin/env python3
"""Every command in the documents is one that the programs take, and those marked as runnable run.

    documented_commands.py ROOT BIN WORK [NAME=PATH ...]

1. Each `elf-...` command in a fenced block of README.md, docs/ and the cards in data/models: the subcommand exists and every option is in its --help.
2. A block after the line `<!-- run -->` is run by bash in WORK, with BIN in PATH and what NAME=PATH names linked as WORK/NAME; of lines that begin
   with `$ ` only these are commands, the others are their output. `<!-- run: s/LONG/SHORT/ -->` edits the block first, where the real one takes hours.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

root, bin_folder, work = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
links = dict(argument.split("=", 1) for argument in sys.argv[4:])
documents = [root / "README.md", *sorted((root / "docs").glob("*.md")), *sorted((root / "data/models").glob("*/README.md"))]


def blocks(document):
    """(line, mark before it, text) of each fenced block."""
    mark, begin, lines = "", 0, None
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if line.startswith("```"):
            if lines is None:
                begin, lines = number, []
            else:
                yield begin, mark, "\n".join(lines)
                mark, lines = "", None
        elif lines is not None:
            lines.append(line)
        elif line.strip():
            mark = line if line.startswith("<!-- run") else ""


def commands(text):
    """The lines of a block that are typed: all, or those after `$ `."""
    typed = [line[2:] for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.startswith("$ ")]
    return "\n".join(typed) if typed else text


help_texts = {}


def help_of(*words):
    if words not in help_texts:
        done = subprocess.run([bin_folder / words[0], *words[1:], "--help"], capture_output=True, text=True)
        help_texts[words] = done.stdout if done.returncode == 0 else ""
    return help_texts[words]


def wrong_options(line):
    """What an `elf-...` command of a line names that the program does not know."""
    for part in re.split(r"\||&&|;|\$\(|\)", line):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            continue
        begin = next((i for i, word in enumerate(words) if re.fullmatch(r"(?:.*/)?elf-[a-z]+", word)), None)
        if begin is None:
            continue
        name, rest = pathlib.Path(words[begin]).name, words[begin + 1:]
        if not (bin_folder / name).exists():
            yield f"{name}: no such program"
            continue
        known = help_of(name)
        if rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]) and "Subcommands:" in known and re.search(rf"^  {rest[0]} ", known, re.M):
            known += help_of(name, rest[0])
        for word in rest:
            option = word.split("=")[0]
            if re.fullmatch(r"--[a-z][a-z0-9-]*", option) and not re.search(rf"(?<![\w-]){option}(?![\w-])", known):
                yield f"{name}: its --help has no {option}"


def run(document, number, mark, text):
    edits = re.fullmatch(r"<!-- run(?:: (.*))? -->", mark)
    if not edits:
        return f"{document.relative_to(root)}:{number}: '{mark}' is not `<!-- run -->` or `<!-- run: s/A/B/ -->`"
    script = commands(text)
    for old, new in re.findall(r"s/((?:[^/\\]|\\.)*)/((?:[^/\\]|\\.)*)/", edits[1] or ""):
        if old not in script:
            return f"{document.relative_to(root)}:{number}: nothing to edit: '{old}'"
        script = script.replace(old, new)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=work, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    print(f"{document.relative_to(root)}:{number}: ran, exit code {done.returncode}", flush=True)
    if done.returncode != 0:
        return f"{document.relative_to(root)}:{number}: exit code {done.returncode} of\n{script}\n{done.stderr[-2000:]}"
    return None


shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
for name, target in links.items():
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    (work / name).symlink_to(pathlib.Path(target).resolve())
os.environ["PATH"] = f"{bin_folder}:{os.environ['PATH']}"
faults, looked_at, ran = [], 0, 0
for document in documents:
    for number, mark, text in blocks(document):
        for line in commands(re.sub(r"\\\n\s*", " ", text)).splitlines():
            looked_at += "elf-" in line
            faults += [f"{document.relative_to(root)}:{number}: {fault}" for fault in wrong_options(line)]
        if mark:
            ran += 1
            faults += filter(None, [run(document, number, mark, text)])
print(f"{looked_at} commands compared with --help, {ran} blocks run, {len(faults)} faults")
print(*faults, sep="\n", file=sys.stderr)
sys.exit(bool(faults) or not ran or not looked_at)
