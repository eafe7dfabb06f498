#!/usr/bin/env python3
"""The limits of counters: each fires on a step that just misses it, and on nothing else. And which
steps peer has a call for."""

import importlib.machinery
import importlib.util
import pathlib
import unittest


def load(name):
    """A program beside this one, as a module."""
    path = pathlib.Path(__file__).with_name(name)
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


counters, peer = load("counters"), load("peer")


def launch(kernel="attend_mma_kernel", **fields):
    counted = {"kernel": kernel, "global_load_sectors": 3200, "global_bytes_moved": 110_000,
               "shared_bank_conflicts": 0, "mma": 64, "grid": [1, 1, 4]}
    return counted | fields


def step(queries=1, **fields):
    return {"name": "step", "queries": queries, "kv_bytes": 102_400,
            "query_and_output_bytes": 2_000, "flops": 1, "mma": 64, "whole_sectors": True,
            "cache": "fp16", "mode": "throughput", "has_mask": False, "is_latent": False,
            "query_heads": 4, "kv_heads": 1, "slots": 1024} | fields


def misses(workload, *launches):
    return counters.misses(counters.row_of(workload, launches))


class Limits(unittest.TestCase):
    def test_a_step_within_them_is_not_mentioned(self):
        self.assertEqual(misses(step(), launch()), [])
        self.assertEqual(misses(step(queries=9), launch(global_load_sectors=3500)), [])

    def test_reads_beyond_the_least(self):
        self.assertEqual(len(misses(step(), launch(global_load_sectors=3300))), 1)
        self.assertEqual(len(misses(step(queries=9), launch(global_load_sectors=3600))), 1)

    def test_reads_of_codes_beyond_the_least(self):
        self.assertEqual(misses(step(cache="e4m3"), launch()), [])
        self.assertEqual(len(misses(step(cache="e4m3"), launch(global_load_sectors=3300))), 1)

    def test_wide_groups_are_listed_only(self):
        wasteful = launch(global_load_sectors=6400)
        self.assertEqual(misses(step(query_heads=9), wasteful), [])
        self.assertEqual(len(misses(step(query_heads=8), wasteful)), 1)
        self.assertEqual(misses(step(mode="ordinary", query_heads=17), wasteful), [])
        self.assertEqual(len(misses(step(mode="ordinary", query_heads=16), wasteful)), 1)

    def test_reads_of_masks_are_listed_only(self):
        wasteful = launch(global_load_sectors=6400)
        self.assertEqual(misses(step(queries=9, has_mask=True), wasteful), [])

    def test_reads_of_latent_caches(self):
        # 64 heads: K once, and 64 of 256 slots for the queries of each split; 128 heads: twice.
        for heads, sectors in ((64, 4064), (128, 8128)):
            latent = step(is_latent=True, query_heads=heads)
            self.assertEqual(misses(latent, launch(global_load_sectors=sectors)), [])
            self.assertEqual(len(misses(latent, launch(global_load_sectors=sectors + 1))), 1)
        self.assertEqual(len(misses(step(is_latent=True), launch(mma=66))), 1)

    def test_rows_that_end_within_a_sector_are_listed_only(self):
        wasteful = launch(global_load_sectors=3300)
        self.assertEqual(misses(step(whole_sectors=False), wasteful), [])

    def test_bank_conflicts(self):
        self.assertEqual(len(misses(step(), launch(shared_bank_conflicts=1))), 1)

    def test_products_on_hidden_tiles(self):
        self.assertEqual(len(misses(step(), launch(mma=66))), 1)

    def test_launches_beside_attention_do_not_count(self):
        merge = launch(kernel="merge_splits_kernel", global_load_sectors=9999, mma=0)
        self.assertEqual(misses(step(), launch(), merge), [])


class Peer(unittest.TestCase):
    def test_has_a_call_for_plain_causal_prefill_alone(self):
        # Fails when a step is timed by a call that does something else, as one without its mask.
        plain = step(queries=512, slots=512, window_left=-1)
        self.assertTrue(peer.has_call(plain))
        for other in ({"has_mask": True}, {"window_left": 255}, {"cache": "e4m3"}, {"slots": 513}):
            self.assertFalse(peer.has_call(plain | other), other)


if __name__ == "__main__":
    unittest.main()
