#!/usr/bin/env python3
"""The weights of golden/eval/gpt2_small_vocab as torch.save writes them: golden/eval/gpt2_small_vocab_bin.

Needs torch and safetensors. Not run by the tests; its output is committed.
"""
import pathlib
import shutil

import torch
from safetensors.torch import load_file

EVAL = pathlib.Path(__file__).resolve().parent.parent / "golden" / "eval"
TARGET = EVAL / "gpt2_small_vocab_bin"
TARGET.mkdir(exist_ok=True)
shutil.copyfile(EVAL / "gpt2_small_vocab" / "config.json", TARGET / "config.json")
torch.save(load_file(EVAL / "gpt2_small_vocab" / "model.safetensors"), TARGET / "pytorch_model.bin")
