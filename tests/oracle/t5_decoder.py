"""Writes golden/t5/decoder.safetensors: logits, loss and gradients of golden/t5/model_relu as a whole (encoder and decoder), from the
published library (transformers 4.44.2, torch on a CPU, float32).

    python tests/oracle/t5_decoder.py tests/golden/t5
"""
import sys

import torch
from safetensors.torch import save_file
from transformers import T5ForConditionalGeneration

folder = sys.argv[1]
model = T5ForConditionalGeneration.from_pretrained(folder + "/model_relu").eval()
model.config.decoder_start_token_id = 0  # the stored configuration does not name it
ids = torch.tensor([[5, 17, 99, 42, 3, 8, 61, 1], [77, 119, 30, 1, 0, 0, 0, 0]])
mask = torch.tensor([[1] * 8, [1] * 4 + [0] * 4])
labels = torch.tensor([[119, 12, 13, 118, 7, 1], [119, 50, 1, -100, -100, -100]])
output = model(input_ids=ids, attention_mask=mask, labels=labels)
output.loss.backward()
names = ["shared.weight", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
         "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
         "decoder.block.0.layer.1.EncDecAttention.k.weight", "encoder.block.1.layer.0.SelfAttention.q.weight"]
parameters = dict(model.named_parameters())
tensors = {"input_ids": ids, "labels": labels, "logits": output.logits.detach(), "loss": output.loss.detach()}
tensors.update({"grad/" + name: parameters[name].grad for name in names})
save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder + "/decoder.safetensors")
