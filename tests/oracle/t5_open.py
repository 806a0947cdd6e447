"""Opens a T5 folder of ours with transformers and writes what it computes: the encoder's hidden states and the decoder's logits.

    python tests/oracle/t5_open.py FOLDER INPUTS.safetensors OUTPUTS.safetensors
inputs: input_ids [B, L], mask [B, L], decoder_ids [B, M].
"""
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import T5EncoderModel, T5ForConditionalGeneration

folder, inputs, outputs = sys.argv[1:]
given = load_file(inputs)
with torch.no_grad():
    whole = T5ForConditionalGeneration.from_pretrained(folder).eval()
    alone = T5EncoderModel.from_pretrained(folder).eval()
    logits = whole(input_ids=given["input_ids"], attention_mask=given["mask"], decoder_input_ids=given["decoder_ids"]).logits
    hidden = alone(input_ids=given["input_ids"], attention_mask=given["mask"]).last_hidden_state
save_file({"last_hidden_state": hidden.contiguous(), "logits": logits.contiguous()}, outputs)
