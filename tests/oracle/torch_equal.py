"""Reads a file of torch.save as Python does and compares its dictionaries of tensors with safetensors files, bit by bit.

    python tests/oracle/torch_equal.py FILE.pt KEY=EXPECTED.safetensors ... [KEY=NUMBER ...]
Only torch and the standard library. Exit code 1 and a list of what differs unless all is equal.
"""
import json
import struct
import sys
import warnings

warnings.filterwarnings("ignore")
import torch

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "I64": torch.int64}


def read_safetensors(path):
    data = open(path, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, about in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        raw = bytearray(data[8 + size + begin:8 + size + end])
        tensors[name] = torch.frombuffer(raw, dtype=DTYPES[about["dtype"]]).reshape(about["shape"])
    return tensors


loaded = torch.load(sys.argv[1], weights_only=True)
wrong = []
for pair in sys.argv[2:]:
    key, expected = pair.split("=", 1)
    if expected.isdigit():
        if loaded[key] != int(expected):
            wrong.append(f"{key} is {loaded[key]}, expected {expected}")
        continue
    tensors, found = read_safetensors(expected), loaded[key]
    wrong += [f"{key}: {name} is on one side only" for name in set(tensors) ^ set(found)]
    wrong += [f"{key}: {name} differs" for name in set(tensors) & set(found) if not torch.equal(tensors[name], found[name])]
    print(f"{key}: {len(tensors)} tensors compared")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
