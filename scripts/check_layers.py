#!/usr/bin/env python3
"""Fails when a folder includes what lies above or beside it (docs/ARCHITECTURE.md), when torch enters the half that
builds without it, or when a random number is drawn outside the keyed streams. Standard library only.

    scripts/check_layers.py [--root DIR]    check the tree
    scripts/check_layers.py --self-test     check that each kind of fault is found
"""
import argparse
import pathlib
import re
import sys
import tempfile

# Each folder and the folders it may include, itself aside.
CORE = ["base"]
TORCH_FREE = ["base", "config", "text", "metrics"]
LAYERS = {
    "base": [],
    "config": CORE,
    "text": CORE,
    "metrics": CORE + ["text"],  # ROUGE stems, BLEU asks for Unicode classes
    "tensor": TORCH_FREE,
    "dist": TORCH_FREE,
}
LAYERS["flow"] = LAYERS["nn"] = TORCH_FREE + ["tensor", "dist"]
LAYERS["data"] = LAYERS["model"] = LAYERS["optim"] = LAYERS["flow"] + ["flow", "nn"]
LAYERS["train"] = LAYERS["sample"] = LAYERS["eval"] = LAYERS["bench"] = LAYERS["data"] + ["data", "model", "optim"]
LAYERS["app"] = LAYERS["train"] + ["train", "sample", "eval", "bench"]
LAYERS["tools"] = LAYERS["app"] + ["app"]

# Single headers that may be included from further down: plain data that several layers hand on.
SHARED_HEADERS = {
    "elf/optim/parameters.h": ["nn", "model"],  # ParamRef: the layer that knows a matrix's meaning fills it
    "elf/data/batch.h": ["model"],              # Batch: what the loader gives and the latent codec reads
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
TORCH = re.compile(r"^(ATen|torch|c10|caffe2)/")
GENERATORS = re.compile(r"\b(?:at|torch)::(?:manual_seed|rand\w*|normal\w*|bernoulli\w*|multinomial|dropout)\s*\("
                        r"|\.(?:normal_|uniform_|bernoulli_|random_)\s*\(")
RANDOM_HOME = "src/tensor/random.cpp"


def folder_of(path):
    """The layer a source file belongs to: src/flow/x.cpp, include/elf/flow/x.h -> flow; tools/x.cpp -> tools."""
    parts = path.parts
    if parts[0] == "include" and len(parts) > 3:
        return parts[2]
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return "tools" if parts[0] == "tools" else None


def without_comments(text):
    """Comments blanked, line numbers kept; strings stay."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
    return pattern.sub(lambda m: m.group() if m.group()[0] == '"' else re.sub(r"[^\n]", " ", m.group()), text)


def included_layer(root, path, quoted, name):
    """The layer of an included header of ours, or None for others and for headers at the top (elf/version.h)."""
    if name.startswith("elf/"):
        parts = name.split("/")
        return parts[1] if len(parts) > 2 else None
    if quoted:
        for start in (path.parent, pathlib.Path("src")):  # private headers
            found = (root / start / name).resolve()
            if found.is_file() and found.is_relative_to(root):
                return folder_of(found.relative_to(root))
    return None


def check_file(root, path):
    """Yields one message a fault."""
    layer = folder_of(path)
    if layer is None:
        return  # src/pch.h: the precompiled header
    if layer not in LAYERS:
        yield f"{path}:1: folder '{layer}' is in no layer; add it to LAYERS in scripts/check_layers.py"
        return
    for number, line in enumerate(without_comments((root / path).read_text(encoding="utf-8")).split("\n"), 1):
        where = f"{path}:{number}"
        include = INCLUDE.match(line)
        if include:
            name = include.group(2)
            target = included_layer(root, path, include.group(1) == '"', name)
            allowed = target in (None, layer) or target in LAYERS[layer] or layer in SHARED_HEADERS.get(name, [])
            if not allowed:
                below = ", ".join(LAYERS[layer])
                yield f"{where}: {layer}/ includes {name}, but {target}/ is not below it (may include: {below})"
            if layer in TORCH_FREE and TORCH.match(name):
                yield f"{where}: {layer}/ includes {name}, but base, config, text and metrics build without torch"
        elif GENERATORS.search(line) and path.as_posix() != RANDOM_HOME:
            call = GENERATORS.search(line).group()
            yield f"{where}: draws random numbers by itself ({call}...); use elf/tensor/random.h"


def check(root):
    root = root.resolve()
    files = [p for top in ("include", "src", "tools") for end in ("h", "cpp", "cu")
             for p in sorted((root / top).rglob(f"*.{end}"))]
    if not files:
        return [f"{root}: no sources found"], 0
    return [fault for p in files for fault in check_file(root, p.relative_to(root))], len(files)


def self_test():
    good = {
        "include/elf/base/a.h": "#pragma once\n#include <string>\n",
        "include/elf/flow/b.h": '#include <ATen/core/Tensor.h>\n#include "elf/base/a.h"\n#include "elf/version.h"\n',
        "src/config/private.h": "",
        "src/config/c.cpp": '#include "private.h"\n// #include "elf/app/x.h" and at::rand({2})\n',
        "src/nn/n.cpp": '#include "elf/optim/parameters.h"\nstd::string s = "// not a comment";\n',
        "src/tensor/random.cpp": "auto x = at::rand({2}, generator);\n",
        "src/app/d.cpp": '#include "elf/train/trainer.h"\nvoid f() { random_order(3); normalize(x); }\n',
        "tools/t.cpp": '#include "elf/app/tools.h"\n',
    }
    bad = {
        "src/flow/up.cpp": ('#include "elf/model/net.h"\n', "up.cpp:1: flow/ includes elf/model/net.h"),
        "src/sample/side.cpp": ('\n#include "elf/train/trainer.h"\n', "side.cpp:2: sample/ includes elf/train"),
        "src/optim/side.cpp": ('#include "elf/model/net.h"\n', "side.cpp:1: optim/ includes elf/model"),
        "src/text/up.cpp": ('#include "elf/config/run_config.h"\n', "text/ includes elf/config"),
        "src/base/private.cpp": ('#include "../config/private.h"\n', "base/ includes ../config/private.h"),
        "src/metrics/torch.cpp": ("#  include <ATen/ATen.h>\n", "torch.cpp:1: metrics/ includes ATen/ATen.h"),
        "include/elf/config/torch.h": ("#include <torch/types.h>\n", "config/ includes torch/types.h"),
        "src/train/seed.cpp": ("/* at::rand(1) */\nvoid f() { at::manual_seed(1); }\n", "seed.cpp:2: draws"),
        "src/nn/rand.cpp": ("auto x = torch::randn({2});\n", "rand.cpp:1: draws"),
        "src/model/init.cpp": ("w.normal_(0, 0.02);\n", "init.cpp:1: draws"),
        "src/attic/x.cpp": ("", "'attic' is in no layer"),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()

        def write(name, text):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")

        for name, text in good.items():
            write(name, text)
        assert check(root) == ([], len(good)), check(root)
        for name, (text, expected) in bad.items():
            write(name, text)
            faults, _ = check(root)
            assert len(faults) == 1 and expected in faults[0], (name, expected, faults)
            (root / name).unlink()
        assert check(root / "nowhere")[0], "an empty tree must not pass"
    print(f"check_layers: {len(bad)} kinds of fault found, {len(good)} good files passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    faults, count = check(options.root)
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        return 1
    print(f"check_layers: {count} files, every include points downward")
    return 0


if __name__ == "__main__":
    sys.exit(main())
