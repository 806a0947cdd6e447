#!/usr/bin/env python3
"""Reads the archives of published corpora and writes what elf-prepare reads, record by record, to standard output.
Needs nothing but Python's standard library.

    corpora.py openwebtext ARCHIVE...                  JSONL, a document each: {"text": ...}
    corpora.py xsum ARCHIVE SPLIT.json --part NAME     JSONL: {"id": ..., "document": ..., "summary": ...}
    corpora.py sgm FILE                                text, a segment a line

openwebtext takes openwebtext.tar.xz as it is distributed (archives of text files inside an archive), or the urlsf_subset*.tar
and *_data.xz in it. xsum takes XSUM-EMNLP18-Summary-Data-Original.tar.gz and the list of ids of its three parts (train,
validation, test). sgm takes the test sets of WMT. Documents come in the order of the archive, segments in that of the file.
"""
import argparse
import html
import json
import re
import sys
import tarfile


def fail(message):
    print(f"corpora: {message}", file=sys.stderr)
    sys.exit(2)


def write_json(record):
    sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


def texts_in(stream, name):
    """Every text file of an archive and of the archives in it: pairs of name and bytes."""
    with tarfile.open(fileobj=stream, mode="r|*") as archive:
        for member in archive:
            if not member.isfile():
                continue
            path = f"{name}/{member.name}"
            if member.name.endswith((".xz", ".tar", ".tar.gz", ".tgz")):
                yield from texts_in(archive.extractfile(member), path)
            elif member.name.endswith(".txt"):
                yield path, archive.extractfile(member).read()


def openwebtext(arguments):
    count = 0
    for name in arguments.archives:
        with open(name, "rb") as stream:
            for path, content in texts_in(stream, name):
                text = content.decode("utf-8", errors="replace").strip()
                if text:
                    write_json({"text": text})
                    count += 1
    if count == 0:
        fail(f"{', '.join(arguments.archives)}: no text files in there")


def xsum(arguments):
    with open(arguments.split, encoding="utf-8") as file:
        parts = json.load(file)
    if arguments.part not in parts:
        fail(f"{arguments.split}: no part '{arguments.part}', it has {', '.join(parts)}")
    missing = set(parts[arguments.part])
    with tarfile.open(arguments.archive, "r:*") as archive:
        for member in archive:
            match = re.search(r"([^/]+)\.summary$", member.name)
            if not match or match.group(1) not in missing:
                continue
            text = archive.extractfile(member).read().decode("utf-8")
            sections = dict(re.findall(r"\[SN\]([A-Z-]+)\[SN\](.*?)(?=\[SN\]|\Z)", text, re.S))
            if not {"FIRST-SENTENCE", "RESTBODY"} <= sections.keys():
                fail(f"{arguments.archive}: {member.name} has no FIRST-SENTENCE or no RESTBODY")
            missing.remove(match.group(1))
            write_json({"id": match.group(1), "document": sections["RESTBODY"].strip(),
                        "summary": sections["FIRST-SENTENCE"].strip()})
    if missing:
        fail(f"{arguments.archive}: {len(missing)} documents of '{arguments.part}' are not there, {min(missing)} for one")


def sgm(arguments):
    with open(arguments.file, encoding="utf-8") as file:
        segments = re.findall(r"<seg[^>]*>(.*?)</seg>", file.read(), re.S | re.I)
    if not segments:
        fail(f"{arguments.file}: no <seg> in there")
    for segment in segments:
        sys.stdout.write(html.unescape(" ".join(segment.split())) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("openwebtext")
    command.add_argument("archives", nargs="+")
    command.set_defaults(run=openwebtext)
    command = commands.add_parser("xsum")
    command.add_argument("archive")
    command.add_argument("split")
    command.add_argument("--part", default="train")
    command.set_defaults(run=xsum)
    command = commands.add_parser("sgm")
    command.add_argument("file")
    command.set_defaults(run=sgm)
    arguments = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        arguments.run(arguments)
    except (OSError, tarfile.TarError, ValueError) as error:
        fail(error)


if __name__ == "__main__":
    main()
