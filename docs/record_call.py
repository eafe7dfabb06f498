"""Purpose: a recorded attention call as an engine's hook would write it, without the engine.

Contract: writes a safetensors file: two layers of a decode step of two requests, whose pages of 4
slots hold K and V as E4M3 codes with a scale for each layer; standard library alone. In an engine
`tensors` is filled from its own, and safetensors.torch.save_file writes the file.
Usage: record_call.py FILE
"""
import json
import struct
import sys

PAGES, PAGE_SLOTS, KV_HEADS, HEADS, DIM, LENGTHS = 5, 4, 2, 4, 16, [9, 3]


def f16(count, first):
    return b"".join(struct.pack("<e", (first + i * 37 % 101) / 64) for i in range(count))


def codes(count, first):
    """Ordinary numbers of either sign: 0x7f would be NaN."""
    return bytes((first + i * 29) % 113 | (i % 2) << 7 for i in range(count))


tensors = {"block_table": ("I32", [2, 3], struct.pack("<6i", 4, 0, 2, 3, -1, -1)),
           "seq_lens": ("I32", [2], struct.pack("<2i", *LENGTHS))}
for layer in (0, 1):
    cache = [PAGES, PAGE_SLOTS, KV_HEADS, DIM]
    elements = PAGES * PAGE_SLOTS * KV_HEADS * DIM
    tensors.update({
        f"layers.{layer}.query": ("F16", [2, HEADS, DIM], f16(2 * HEADS * DIM, layer)),
        f"layers.{layer}.key_cache": ("F8_E4M3", cache, codes(elements, layer)),
        f"layers.{layer}.value_cache": ("F8_E4M3", cache, codes(elements, layer + 5)),
        f"layers.{layer}.k_scale": ("F32", [], struct.pack("<f", 0.011)),
        f"layers.{layer}.v_scale": ("F32", [], struct.pack("<f", 0.25))})

header, data = {"__metadata__": {"scale": "0.25", "causal": "bottom_right"}}, b""
for name, (kind, shape, content) in tensors.items():
    header[name] = {"dtype": kind, "shape": shape,
                    "data_offsets": [len(data), len(data) + len(content)]}
    data += content
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
