"""A decision model for llama.cpp's own code: SmolLM2's weights with two keys added. It decides badly."""

import shutil
import struct

from prism_mesa.llm.clients.embedded import find_gguf

OPTIONS = "{% for o in options %}{{ o.label or loop.index }}. {{ o.key }}\n{% endfor %}"
TEMPLATE = f"{{{{ state }}}}\n{{{{ instructions }}}}\n{OPTIONS}Answer:"


def _text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def with_keys(source, target, **keys):
    """Copy a GGUF file with further keys before its own, of a length that leaves its tensors aligned."""
    with source.open("rb") as old, target.open("wb") as new:
        magic, version, n_tensors, n_keys = struct.unpack("<4sIQQ", old.read(24))
        new.write(struct.pack("<4sIQQ", magic, version, n_tensors, n_keys + len(keys)))
        pairs = [_text(key) + struct.pack("<I", 8) for key in keys]
        free = -sum(len(pair) + 8 + len(value) for pair, value in zip(pairs, keys.values(), strict=True)) % 32
        *first, last = keys.values()
        for pair, value in zip(pairs, [*first, last + " " * free], strict=True):
            new.write(pair + _text(value))
        shutil.copyfileobj(old, new, 2**22)


def make_decision_model(path, kind="openjev"):
    """Write a decision model of a kind that llama.cpp knows."""
    keys = {"llama.decision.type": kind, "tokenizer.chat_template.systemone": TEMPLATE}
    with_keys(find_gguf("smollm2"), path, **keys)
