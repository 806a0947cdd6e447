"""Writes golden/torch/: small files of torch.save, one a case, and their tensors as safetensors (torch 2.11 on a CPU).

    python tests/oracle/torch_files.py tests/golden/torch
For each NAME.pt there is NAME.safetensors with what Python reads, under the path "key.key". Only torch and the standard library.
"""
import argparse
import json
import os
import pathlib
import struct
import sys
from collections import OrderedDict, defaultdict

import torch

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
          torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}


def tensors_in(value, path=""):
    if torch.is_tensor(value):
        return {path: value.detach().contiguous()}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else []
    found = {}
    for key, inner in items:
        found.update(tensors_in(inner, f"{path}.{key}" if path else str(key)))
    return found


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = bytes(tensor.reshape(-1).clone().view(torch.uint8).tolist()) if tensor.numel() else b""
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def save(name, value, **options):
    torch.save(value, folder / f"{name}.pt", **options)
    write_safetensors(folder / f"{name}.safetensors", tensors_in(value))


class Touch:
    """An object whose unpickling would create a file."""

    def __reduce__(self):
        return os.system, ("touch was_run",)


base = torch.arange(6, dtype=torch.float32).reshape(2, 3)
state = OrderedDict(a=base + 0.5, b=torch.tensor(7))
state._metadata = OrderedDict({"": {"version": 1}})
save("ordered_dict", state)
save("dict", {"a": base, "empty": torch.zeros(0, 4), "scalar": torch.tensor(2.5), "none": None})
save("nested", {"model": OrderedDict(w=base), "ema": {"w": base * 2}, "optimizer": {"state": {0: {"step": 3, "exp_avg": base - 1}}, "param_groups": [
    {"lr": 1e-3, "betas": (0.9, 0.999), "params": [0]}]}, "step": 2**40, "name": "tiny", "done": True})
save("parameter", {"w": torch.nn.Parameter(base), "buffer": torch.nn.Buffer(base + 1)})
save("dtypes", {str(t).split(".")[1]: (base * 3).to(t) for t in DTYPES})
save("shared", {"a": base, "b": base, "row": base[1], "column": base[:, 1]})
save("offset_and_strides", {"transposed": base.t(), "tail": torch.arange(10.0)[4:], "every_other": torch.arange(10.0)[::2],
                            "repeated": torch.tensor([1.0, 2.0]).expand(3, 2), "inner": torch.arange(24.0).reshape(2, 3, 4)[:, 1:, 1:3]})
save("containers", {"list": [base, (base + 1, [base + 2])], "default": defaultdict(list, x=base)})
save("legacy", {"w": base, "half": base.half(), "view": base[1:], "n": 5}, _use_new_zipfile_serialization=False)
save("protocol_4", {"w": base, "text": "x" * 300}, pickle_protocol=4)
attributed = base.clone()
attributed.note = "a tensor with an attribute"
save("attributes", {"w": attributed})
save("namespace", {"state_dict": {"w": base}, "args": argparse.Namespace(lr=0.1, layers=[1, 2])})
save("bad_object", {"state_dict": {"w": base}, "extra": Touch()})
torch.save({"w": base, "trap": Touch()}, folder / "trap.pt")
torch.save({"w": base, "complex": torch.zeros(2, dtype=torch.complex64)}, folder / "complex.pt")
torch.save(torch.nn.Linear(3, 2), folder / "module.pt")
