#!/usr/bin/env python3
"""Purpose: cases that FlashInfer's compiled kernels can take: fp16, head dimension 128.
Contract: every pairing of a history with a setting, in a fixed order; one JSON file each.
Usage: cases.py FOLDER"""
import json
import pathlib
import sys

# 128 ** -0.5 as fp32 has it.
SCALE = 0.0883883461356163

# Query heads, K/V heads, slots of a page, order of pages, layout, causal, left window.
SETTINGS = [
    (1, 1, 16, "identity", "slot_head", "bottom_right", -1),
    (4, 1, 16, "shuffled", "head_slot", "bottom_right", -1),
    (8, 2, 1, "reversed", "slot_head", "bottom_right", -1),
    (6, 2, 8, "shuffled", "slot_head", "none", -1),
    (2, 2, 64, "far_apart", "head_slot", "bottom_right", 7),
    (8, 1, 4, "far_apart", "slot_head", "bottom_right", 0),
]


def admit(request, tokens):
    return {"op": "admit", "request": request, "prompt_tokens": tokens}


def step(*rows):
    return {"op": "step", "rows": [{"request": r, "append": a, "queries": q} for r, a, q in rows]}


# Histories: prefill whole, in chunks, decode, mixed batches, pages that are used again.
HISTORIES = {
    "one_token": [admit(0, 1), step((0, 1, 1))],
    "prefill": [admit(0, 37), step((0, 37, 37))],
    "long_prefill": [admit(0, 150), step((0, 150, 150))],
    "chunks": [admit(0, 61), step((0, 20, 20)), step((0, 41, 41))],
    "decode": [admit(0, 19), step((0, 19, 19)), step((0, 1, 1)), step((0, 1, 1))],
    "long_decode": [admit(0, 300), step((0, 300, 1)), step((0, 1, 1))],
    "decode_batch": [admit(0, 5), admit(1, 33), admit(2, 70),
                     step((0, 5, 5), (1, 33, 33), (2, 70, 70)),
                     step((0, 1, 1), (1, 1, 1), (2, 1, 1))],
    "beyond": [admit(0, 4), step((0, 4, 6))],
    "mixed": [admit(0, 40), step((0, 40, 40)), admit(1, 17), step((0, 1, 1), (1, 17, 17))],
    "reuse": [admit(0, 9), admit(1, 30), step((0, 9, 9), (1, 30, 30)),
              {"op": "cancel", "request": 1}, admit(2, 25), step((0, 1, 1), (2, 25, 25)),
              step((0, 1, 1), (2, 1, 1))],
}


def case(name, history, setting, seed):
    query_heads, kv_heads, page_slots, order, layout, causal, window = setting
    return {
        "version": 1, "name": name, "comment": "",
        "shape": {"layers": 1, "query_heads": query_heads, "kv_heads": kv_heads,
                  "head_dim_k": 128, "head_dim_v": 128, "query_dtype": "f16", "kv_dtype": "f16",
                  "output_dtype": "f16", "scale": SCALE, "softcap": 0.0,
                  "alibi": False, "sinks": False,
                  "rope": {"pairing": "none", "dims": 0, "theta": 10000.0}, "kv_scale": "none"},
        "mask": {"causal": causal, "window_left": window, "window_right": -1, "encoding": "none",
                 "additive_dtype": "f32", "additive_finite_minimum": False,
                 "broadcast_batch": False, "broadcast_head": True, "broadcast_query": False},
        "pool": {"page_slots": page_slots, "page_count": 2 * (400 // page_slots + 4),
                 "order": order, "layout": layout, "poison": "undefined", "overcommit": 1.0},
        "data": {"version": 1, "design": "normal", "seed": seed},
        "ops": history,
        "exec": {"variant": "", "split_slots": 0, "schedule_seed": seed % 3,
                 "rounding": "nearest", "rounding_seed": 0, "repeat": 1},
    }


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    seed = 0
    for name, history in HISTORIES.items():
        for number, setting in enumerate(SETTINGS):
            seed += 1
            title = f"{name}_{number}"
            text = json.dumps(case(title, history, setting, seed), indent=1)
            (folder / f"{seed:03}_{title}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
