#!/usr/bin/env python3
"""No type has the name of another: two of one name in one namespace are one to the linker, which takes the functions of either.

    check_names.py              reads include/, src/, tools/; exit code 1 and both places when there are two
    check_names.py --self-test  that it finds what it should
"""
import collections
import pathlib
import re
import sys

TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum class|enum) (\w+)(?: final)?(?: :.*)? ?\{")


def types(text):
    """(line, 'namespace::Name') of the types at the top level of named namespaces; those of unnamed ones are the file's own."""
    spaces = []
    for number, line in enumerate(text.splitlines(), 1):
        opened = re.match(r"^namespace ?([\w:]*) ?\{", line)
        if opened:
            spaces.append(opened[1])
        elif re.match(r"^\}  // namespace", line) and spaces:
            spaces.pop()
        elif (found := TYPE.match(line)) and "" not in spaces:
            yield number, "::".join([*spaces, found[1]])


def twice(files):
    places = collections.defaultdict(list)
    for name, text in files:
        for number, type_name in types(text):
            places[type_name].append(f"{name}:{number}")
    return {name: where for name, where in places.items() if len(where) > 1}, len(places)


def self_test():
    a = "namespace elf {\nstruct A {\n};\nnamespace {\nstruct B {\n};\n}  // namespace\n}  // namespace elf\n"
    b = "namespace elf {\nclass A final : public X {\n};\nstruct B {};\n}  // namespace elf\n"
    c = "namespace elf::app {\nstruct A {\n};\n}  // namespace elf::app\n"
    assert twice([("a", a), ("b", b), ("c", c)])[0] == {"elf::A": ["a:2", "b:2"]}
    print("check_names: finds what it should")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(__file__).resolve().parent.parent
    paths = sorted(p for folder in ("include", "src", "tools") for p in (root / folder).rglob("*") if p.suffix in (".h", ".cpp"))
    double, count = twice((p.relative_to(root), p.read_text()) for p in paths)
    for name, where in double.items():
        print(f"{name} is defined at {' and '.join(where)}: give one of them another name, or an unnamed namespace", file=sys.stderr)
    print(f"check_names: {count} types, {len(double)} names taken twice")
    sys.exit(bool(double) or count < 100)


if __name__ == "__main__":
    main()
