#!/usr/bin/env python3
"""The plain PyTorch program that elf-bench is timed beside: scripts/bench_vs_peer.sh runs both.

It is written from docs/ALGORITHM.md the way one writes it first, in eager PyTorch, and does what the published
implementation does for the same training step: two forwards without gradients over every row, one with; logits of
the whole vocabulary at every position; Newton-Schulz on one matrix after another; the two halves of guidance one
after the other. Weights and data are random: it is there for its time and memory, not for its results.

    peer.py train  --preset elf-b --batch 8 --length 128 --steps 5
    peer.py sample --preset elf-b --batch 8 --length 128 --sampling-steps 8 --condition 64 --cfg 2

Needs PyTorch only. Prints one JSON object with the names of `elf-bench speed --json`.
"""
import argparse
import contextlib
import json
import math
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

SIZES = {  # depth, width, heads
    "elf-b": (12, 768, 12),
    "elf-m": (24, 1056, 16),
    "elf-l": (32, 1280, 16),
    "small": (6, 256, 4),
    "nano": (4, 128, 4),
}
PREFIX = 4  # tokens each of time, guidance scale and mode
BOTTLENECK = 128


class Norm(nn.Module):
    """x / rms(x) * weight, in float32 whatever x is."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        scale = (wide.square().mean(dim=-1, keepdim=True) + 1e-6).rsqrt()
        return (wide * scale * self.weight).type_as(x)


class ScalarEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.register_buffer("rates", torch.exp(torch.arange(128) * (-math.log(10000.0) / 128)))

    def forward(self, value):
        angles = torch.outer(value, self.rates)
        return self.layers(torch.cat((torch.cos(angles), torch.sin(angles)), dim=1))


def turn(x, cos, sin):
    """Pairs (2i, 2i + 1) of the last dimension turned by their angle."""
    pairs = x.unflatten(-1, (-1, 2))
    a, b = pairs.unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        inner = int(int(width * 4) * 2 / 3)
        self.heads = heads
        self.before_attention, self.before_feed = Norm(width), Norm(width)
        self.of_queries, self.of_keys = Norm(width // heads), Norm(width // heads)
        self.to_qkv, self.from_heads = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gate_and_value, self.down = nn.Linear(width, 2 * inner), nn.Linear(inner, width)

    def forward(self, x, cos, sin):
        rows, tokens, width = x.shape
        qkv = self.to_qkv(self.before_attention(x)).reshape(rows, tokens, 3, self.heads, -1)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        q, k = turn(self.of_queries(q), cos, sin), turn(self.of_keys(k), cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.from_heads(mixed.transpose(1, 2).reshape(rows, tokens, width))
        gate, value = self.gate_and_value(self.before_feed(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * value)


class Network(nn.Module):
    def __init__(self, preset, latent, vocab):
        super().__init__()
        depth, width, heads = SIZES[preset]
        self.head_width = width // heads
        self.join = nn.Linear(2 * latent, latent)
        self.squeeze, self.widen = nn.Linear(latent, BOTTLENECK, bias=False), nn.Linear(BOTTLENECK, width)
        self.of_time, self.of_scale = ScalarEmbedding(width), ScalarEmbedding(width)
        self.prefix = nn.Parameter(0.02 * torch.randn(3, PREFIX, width))
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.last_norm, self.last = Norm(width), nn.Linear(width, latent)
        self.to_latent, self.to_latent_bias = nn.Parameter(0.02 * torch.randn(width, latent)), nn.Parameter(torch.zeros(latent))
        self.to_words, self.to_words_bias = nn.Parameter(0.02 * torch.randn(latent, vocab)), nn.Parameter(torch.zeros(vocab))

    def angles(self, length, device):
        rates = 10000.0 ** (torch.arange(0, self.head_width, 2, device=device) / -self.head_width)
        data = torch.outer(torch.arange(length, device=device), rates)
        return torch.cat((data.new_zeros(3 * PREFIX, self.head_width // 2), data))

    def forward(self, z, known, t, w, mode, blocks=None):
        """x-prediction, and logits when some row is in decode mode (mode [B] is not None)."""
        x = self.widen(self.squeeze(self.join(torch.cat((z, known), dim=-1))))
        gate = torch.zeros_like(t) if mode is None else mode
        head = (self.prefix[0] + self.of_time(t).unsqueeze(1), self.prefix[1] + self.of_scale(w).unsqueeze(1),
                self.prefix[2] * gate.reshape(-1, 1, 1))
        x = torch.cat((*head, x), dim=1)
        angles = self.angles(z.shape[1], z.device)
        cos, sin = angles.cos(), angles.sin()
        with torch.autocast(z.device.type, torch.bfloat16) if blocks == "bf16" else contextlib.nullcontext():
            for layer in self.layers:
                x = layer(x, cos, sin)
        x = x.float()[:, 3 * PREFIX:]
        predicted = self.last(self.last_norm(x))
        if mode is None:
            return predicted, None
        latent = F.gelu(x @ self.to_latent + self.to_latent_bias, approximate="tanh")
        return predicted, latent @ self.to_words + self.to_words_bias


def orthogonal(x):
    wide = x if x.shape[0] <= x.shape[1] else x.T
    y = wide / (wide.norm() + 1e-8)
    for _ in range(5):
        gram = y @ y.T
        y = 3.4445 * y + (-4.7750 * gram + 2.0315 * gram @ gram) @ y
    return y if x.shape[0] <= x.shape[1] else y.T


class MuonWithAdam:
    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) if p.ndim != 2 else None for p in self.parameters]
        self.count = 0

    @torch.no_grad()
    def step(self, lr):
        self.count += 1
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for p, m, v in zip(self.parameters, self.first, self.second):
            beta = 0.95 if v is None else 0.9
            m.mul_(beta).add_(p.grad, alpha=1 - beta)
            ahead = m * (beta / (1 - beta ** (self.count + 1))) + p.grad * ((1 - beta) / (1 - beta ** self.count))
            if v is None:
                p.sub_(orthogonal(ahead), alpha=lr * math.sqrt(max(1.0, p.shape[0] / p.shape[1])))
            else:
                v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                p.addcdiv_(ahead, (v / (1 - 0.999 ** self.count)).sqrt() + 1e-8, value=-lr)
            p.grad = None


class Laps:
    """Seconds by phase of one round."""

    def __init__(self, device):
        self.device, self.seconds = device, {}
        self.last = self.now()

    def now(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def __call__(self, name):
        now = self.now()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self.last
        self.last = now


class Training:
    def __init__(self, network, a, device):
        self.network, self.blocks, self.device = network, a.precision, device
        self.latents = torch.randn(a.batch, a.length, a.latent, device=device)
        self.ids = torch.randint(a.vocab, (a.batch, a.length), device=device)
        self.average = [p.detach().clone() for p in network.parameters()]
        self.optimiser = MuonWithAdam(network.parameters())
        self.tokens = a.batch * a.length

    def draw(self):
        x, device = self.latents, self.device
        rows, length, _ = x.shape
        t = torch.sigmoid(0.8 * torch.randn(rows, device=device) - 1.5)
        w = 1.5 * torch.exp(torch.rand(rows, device=device) * math.log(4.0)) - 1
        decode = (torch.rand(rows, device=device) < 0.2).float()
        coin = (torch.rand(rows, device=device) < 0.5).float()
        p = torch.sigmoid(0.8 * torch.randn(rows, length, 1, device=device) + 0.8)
        at = t[:, None, None]
        return t, w, decode, coin, at * x + (1 - at) * 2 * torch.randn_like(x), p * x + (1 - p) * 5 * torch.randn_like(x)

    def round(self, laps):
        t, w, decode, coin, z, corrupted = self.draw()
        over = lambda row: row[:, None, None]
        laps("data")
        with torch.no_grad():
            plain, _ = self.network(z, torch.zeros_like(z), t, w, None, self.blocks)
            guided, _ = self.network(z, plain, t, w, None, self.blocks)
        laps("no_grad_forward")
        state = torch.where(over(decode) > 0, corrupted, z)
        known = plain * over(coin * (1 - decode))
        predicted, logits = self.network(state, known, torch.where(decode > 0, torch.ones_like(t), t), w, decode, self.blocks)
        span = over((1 - t).clamp(min=0.05))
        target = (self.latents - z + over(coin * (1 - 1 / w)) * (guided - plain)) / span
        squares = ((predicted - z) / span - target).square().mean(-1)
        surprise = F.cross_entropy(logits.flatten(0, 1), self.ids.flatten(), reduction="none").view_as(squares)
        loss = torch.where(decode[:, None] > 0, surprise, squares).sum() / self.tokens
        laps("forward")
        loss.backward()
        laps("backward")
        self.optimiser.step(1e-3)
        laps("optimiser")
        with torch.no_grad():
            for average, p in zip(self.average, self.network.parameters()):
                average.mul_(0.9999).add_(p, alpha=1e-4)
        laps("ema")


class Sampling:
    def __init__(self, network, a, device):
        self.network, self.a, self.device = network, a, device
        self.tokens = a.batch * (a.length - a.condition)

    @torch.no_grad()
    def round(self, laps):
        a, device = self.a, self.device
        shape = (a.batch, a.length, a.latent)
        inner = torch.sigmoid(0.8 * torch.randn(a.sampling_steps - 1) - 1.5).sort().values
        times = [0.0, *inner.tolist(), 1.0]
        z, predicted = 2 * torch.randn(shape, device=device), torch.zeros(shape, device=device)
        w, ones = torch.full((a.batch,), 3.0, device=device), torch.ones(a.batch, device=device)
        for step in range(a.sampling_steps):
            now, then = times[step], times[step + 1]
            if step + 1 < a.sampling_steps:
                keep = min(1.0, max(0.0, 1 - 1.5 * (then - now)))
                now, z = keep * now, keep * z + (1 - keep) * 2 * torch.randn_like(z)
            t = ones * now
            with_condition, _ = self.network(z, predicted, t, w, None, a.precision)
            if a.condition and a.cfg != 1:
                hidden, known = z.clone(), predicted.clone()
                hidden[:, :a.condition] = known[:, :a.condition] = 0
                without, _ = self.network(hidden, known, t, w, None, a.precision)
                with_condition = without + a.cfg * (with_condition - without)
            predicted = with_condition
            z = z + (then - now) / max(1 - now, 0.05) * (predicted - z)
        laps("steps")
        _, logits = self.network(z, torch.zeros_like(z), ones, w, ones, a.precision)
        ids = logits.argmax(-1)
        laps("decode")
        return ids


def gemm_rate(device, dtype):
    n, repeats = (2048, 5) if device.type == "cpu" else (8192, 10)
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    laps = Laps(device)
    a @ b
    laps("warm-up")
    for _ in range(repeats):
        a @ b
    laps("gemm")
    return repeats * 2 * n ** 3 / laps.seconds["gemm"] / 1e9


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "sample"))
    parser.add_argument("--preset", choices=SIZES, default="elf-b")
    numbers = {"batch": 8, "length": 128, "latent": 512, "vocab": 32100, "steps": 5, "sampling-steps": 8, "condition": 0,
               "threads": 0}
    for name, default in numbers.items():
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--cfg", type=float, default=1.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32")
    return parser.parse_args()


def main():
    a = arguments()
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    device = torch.device(a.device)
    network = Network(a.preset, a.latent, a.vocab).to(device)
    rate = gemm_rate(device, torch.bfloat16 if a.precision == "bf16" else torch.float32)
    work = Training(network, a, device) if a.what == "train" else Sampling(network, a, device)
    seconds, phases = [], []
    for _ in range(a.steps + 1):
        laps = Laps(device)
        begin = laps.last
        work.round(laps)
        seconds.append(laps.now() - begin)
        phases.append(laps.seconds)
    seconds, phases = seconds[1:], phases[1:]
    median = statistics.median(seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device) / 2 ** 20
    print(json.dumps({
        "what": a.what, "preset": a.preset, "batch": a.batch, "length": a.length,
        "parameters": sum(p.numel() for p in network.parameters()),
        "seconds_median": round(median, 4), "seconds": [round(s, 4) for s in seconds],
        "tokens_per_second": round(work.tokens / median, 1),
        "phases_median": {name: round(statistics.median(p[name] for p in phases), 4) for name in phases[0]},
        "gemm_gflops": round(rate, 1), "peak_rss_mib": round(peak), "device": str(device), "precision": a.precision,
        "threads": torch.get_num_threads(), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
