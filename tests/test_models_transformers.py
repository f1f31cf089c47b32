"""Five transformers models with tiny random configs: outputs, gradients and one graph, as torch.compile takes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import minidynamo
from minidynamo.testing import CompileCounter

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("default")

BERT = dict(vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            max_position_embeddings=32)


def ints(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(3, high, shape, generator=torch.Generator().manual_seed(1))


def text(batch: int) -> dict[str, torch.Tensor]:
    ids = ints(60, batch, 8)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}


def pairs(batch: int) -> dict[str, torch.Tensor]:
    return {"input_ids": ints(60, batch, 8), "labels": ints(60, batch, 5)}


def pictures(batch: int) -> dict[str, torch.Tensor]:
    pixels = torch.randn(batch, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    return {"pixel_values": pixels, "labels": ints(5, batch) % 3}


MODELS: dict[str, tuple[str, dict[str, Any], Callable[[int], dict[str, torch.Tensor]]]] = {
    "gpt2": ("GPT2LMHeadModel", dict(vocab_size=64, n_embd=16, n_layer=2, n_head=2, n_positions=32, bos_token_id=1,
                                     eos_token_id=2), text),
    "bert": ("BertForMaskedLM", BERT, text),
    "llama": ("LlamaForCausalLM", dict(**BERT, num_key_value_heads=1, pad_token_id=0, bos_token_id=1, eos_token_id=2), text),
    "t5": ("T5ForConditionalGeneration", dict(vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2,
                                              decoder_start_token_id=0, pad_token_id=0, eos_token_id=1), pairs),
    "vit": ("ViTForImageClassification", dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                              intermediate_size=32, image_size=16, patch_size=8, num_labels=3), pictures),
}


def build(name: str, train: bool) -> tuple[Any, Callable[[int], dict[str, torch.Tensor]]]:
    cls, settings, inputs = MODELS[name]
    torch.manual_seed(0)
    kind = getattr(transformers, cls)
    model = kind(kind.config_class(**settings))
    model.train(train)
    return model, inputs


@pytest.fixture(autouse=True)
def fresh():
    minidynamo.reset()
    with minidynamo.config.patch(error_on_internal=True):
        yield
    minidynamo.reset()


@pytest.mark.parametrize("name", MODELS)
def test_inference(name):
    model, inputs = build(name, train=False)
    reference, _ = build(name, train=False)
    counter = CompileCounter()
    compiled = minidynamo.optimize(model, backend=counter)
    model(**inputs(2)), reference(**inputs(2))          # what a first call writes to the config is not the subject
    with torch.no_grad():
        for _ in range(2):
            got, wanted = compiled(**inputs(2)), reference(**inputs(2))
            assert type(got) is type(wanted) and list(got.keys()) == list(wanted.keys())
            torch.testing.assert_close(got.logits, wanted.logits)
            torch.testing.assert_close(got.loss, wanted.loss)
        assert counter.frame_count == 1, dict(minidynamo.counters["graph_break"])
        for batch in (3, 5):
            torch.testing.assert_close(compiled(**inputs(batch)).logits, reference(**inputs(batch)).logits)
        assert counter.frame_count <= 2                 # one more, for all other batch sizes


@pytest.mark.parametrize("name", MODELS)
def test_training(name):
    model, inputs = build(name, train=True)
    reference, _ = build(name, train=True)
    counter = CompileCounter()
    compiled = minidynamo.optimize(model, backend=counter)
    model(**inputs(2)), reference(**inputs(2))
    for turn in range(2):
        for call in (compiled, reference):
            torch.manual_seed(turn)                     # dropout draws the same numbers
            call.zero_grad()
            call(**inputs(2)).loss.backward()
        gradients = dict(reference.named_parameters())
        for key, parameter in model.named_parameters():
            assert (parameter.grad is None) == (gradients[key].grad is None), key
            if parameter.grad is not None:
                torch.testing.assert_close(parameter.grad, gradients[key].grad, msg=key)
    assert counter.frame_count == 1, dict(minidynamo.counters["graph_break"])
