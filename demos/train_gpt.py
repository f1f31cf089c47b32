"""Trains a small character-level GPT on this project's own text: eager, minidynamo and torch.compile side by side.

    python demos/train_gpt.py [--steps 72] [--backend eager] [--only minidynamo]

What is compiled is one function: forward, a ``print`` (an honest graph break), backward.  The context
grows twice on the way (a change of shape).  Every engine starts from the same weights and sees the same
batches, so under the backend "eager" the losses must be equal to the last bit.
"""
from __future__ import annotations

import argparse
import contextlib
import copy
import io
import pathlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

import minidynamo
from minidynamo.tools.explain import collecting

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONTEXTS = (48, 72, 96)                 # characters seen at once, one third of the steps each
BATCH, WIDTH, HEADS, LAYERS = 16, 96, 4, 4


# ------------------------------------------------------------------ the model
class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, WIDTH), nn.Embedding(max(CONTEXTS), WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def forward_backward(model: GPT, tokens: torch.Tensor) -> torch.Tensor:
    """The function that each engine compiles."""
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    print("█", end="", flush=True)              # a side effect in the middle: the graph must break here
    loss.backward()
    return loss.detach()


# ------------------------------------------------------------------ the text
def read_text() -> str:
    """The project's documents and sources."""
    files = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("minidynamo/**/*.py"))]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def batches(data: torch.Tensor, steps: int) -> Iterator[torch.Tensor]:
    """Random pieces of the text, the same for every engine."""
    generator = torch.Generator().manual_seed(1)
    for step in range(steps):
        length = CONTEXTS[step * len(CONTEXTS) // steps] + 1
        starts = torch.randint(len(data) - length, (BATCH,), generator=generator)
        yield torch.stack([data[start:start + length] for start in starts])


# ------------------------------------------------------------------ the race
def engines(backend: str) -> dict[str, Callable[..., Any]]:
    return {
        "eager": forward_backward,
        "minidynamo": minidynamo.optimize(forward_backward, backend=backend),
        "torch.compile": torch.compile(forward_backward, backend=backend),
    }


class Runner:
    """One engine with its model and optimizer; all start alike."""

    def __init__(self, name: str, step: Callable[..., Any], first: GPT) -> None:
        self.name, self.step, self.model = name, step, copy.deepcopy(first)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.losses: list[float] = []

    def train(self, tokens: torch.Tensor) -> float:
        """One step; its loss."""
        self.optimizer.zero_grad()
        loss = float(self.step(self.model, tokens))
        self.optimizer.step()
        return loss


def speeds(runners: list[Runner], tokens: torch.Tensor, rounds: int) -> dict[str, float]:
    """Steps per second, warm; the engines take turns, so that what else the machine does hits all alike."""
    times: dict[str, list[float]] = {runner.name: [] for runner in runners}
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(rounds):
            for runner in runners:
                start = time.perf_counter()
                runner.train(tokens)
                times[runner.name].append(time.perf_counter() - start)
    return {name: 1 / statistics.median(found) for name, found in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=72)
    parser.add_argument("--backend", default="eager", help="eager, aot_eager, inductor, ...")
    parser.add_argument("--only", help="one engine beside eager")
    found = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    text = read_text()
    letters = sorted(set(text))
    number = {letter: at for at, letter in enumerate(letters)}
    data = torch.tensor([number[letter] for letter in text])
    first = GPT(len(letters))
    print(f"{len(text):,} characters of this project, {len(letters)} different ones; "
          f"a GPT of {sum(p.numel() for p in first.parameters()):,} parameters;\n"
          f"{found.steps} steps, context {' then '.join(map(str, CONTEXTS))}, backend {found.backend!r}; "
          "one block of a bar is one step\n")
    runners = [Runner(name, step, first) for name, step in engines(found.backend).items()
               if found.only in (None, name) or name == "eager"]
    with collecting() as report:
        for runner in runners:
            print(f"{runner.name:<14}", end="", flush=True)
            runner.losses = [runner.train(tokens) for tokens in batches(data, found.steps)]
            print(flush=True)
    eager = runners[0].losses
    speed = speeds(runners, list(batches(data, 3))[-1], rounds=9)
    print(f"\n{'':<14}{'loss':<18}{'beside eager':<24}{'steps/s':>8}  of eager")
    for runner in runners:
        worst = max(abs(a - b) for a, b in zip(runner.losses, eager, strict=True))
        beside = "equal at every step" if worst == 0 else f"differs by {worst:.1e}"
        print(f"{runner.name:<14}{eager[0]:.3f} to {runner.losses[-1]:<9.3f}{beside:<24}{speed[runner.name]:>8.1f}"
              f"{speed[runner.name] / speed['eager']:>10.2f}")
    print(f"\nWhat minidynamo did\n\n{report}")


if __name__ == "__main__":
    main()
