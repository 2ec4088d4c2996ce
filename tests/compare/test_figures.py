# SPDX-License-Identifier: BSD-3-Clause
"""From fio's JSON to figures, from rounds to a median, a spread and a sentence."""

import json

import pytest

from compare import answer, children, fioresult
from compare.stats import HIGHER, INSIDE, LOWER, UNKNOWN, Spread, compare


def fio_json(ios=5000, error=0, **percentiles):
    nothing = {"iops": 0, "bw_bytes": 0, "total_ios": 0, "lat_ns": {"mean": 0}}
    write = {"iops": 25000.0, "bw_bytes": 102400000, "total_ios": ios, "lat_ns": {
        "mean": 39000.0, "percentile": percentiles or {
            "50.000000": 38000, "99.000000": 60000, "99.900000": 90000, "99.990000": 200000}}}
    return json.dumps({"fio version": "fio-3.33", "jobs": [
        {"error": error, "read": nothing, "write": write}]}, indent=2)


def test_figures_are_fio_s_own():
    figures = fioresult.figures("some note\n" + fio_json())
    assert figures["write"]["p50"] == 38000 and figures["write"]["p99"] == 60000
    assert figures["iops"] == 25000 and figures["bandwidth"] == 102400000
    assert "read" not in figures


def test_a_percentile_with_too_few_writes_beyond_it_is_left_out():
    write = fioresult.figures(fio_json(ios=5000))["write"]
    assert "p99.9" in write and "p99.99" not in write
    assert "p99.99" in fioresult.figures(fio_json(ios=50000))["write"]


@pytest.mark.parametrize("text, why", [
    ("", "fio wrote no result"), ("{\n", "not the JSON"), ('{\n"jobs": []}', "not the JSON"),
    ('{\n"jobs": [{"read": {}, "write": {}}]}', "lacks a figure"),
    (fio_json(error=5), "error 5"), (fio_json(ios=0), "no I/O")])
def test_a_result_that_is_none_is_told(text, why):
    with pytest.raises(fioresult.FioFailed, match=why):
        fioresult.figures(text)


def test_the_reason_is_the_engine_s_last_word():
    messages = ("rpma-fio: this machine has no RDMA device: using the software RNIC\n"
                "librpma_apm_client: probe.apm-native.dram: waiting up to 8000 ms for the server at x\n"
                "librpma_apm_client: probe.apm-native.dram: flush_mode=native is not possible here\n"
                "fio: pid=1, err=95/file:x.c\n")
    assert fioresult.reason(messages, "x") == \
        "librpma_apm_client: flush_mode=native is not possible here"
    assert fioresult.reason("fio: pid=1, err=95\nfio: more\n", "x") == "fio: pid=1, err=95"
    assert fioresult.reason(messages.splitlines()[1], "exit status 1") == "exit status 1"


def test_what_the_client_says_of_its_flush_is_kept():
    assert fioresult.flush_said("a\nlibrpma_apm_client: j: connected to ::1; memory: 4096 bytes; flush: "
                                "read-based, visibility only\nb\n") == "read-based, visibility only"
    assert fioresult.flush_said("nothing") == ""


def test_ranges_that_touch_are_no_difference():
    assert compare(Spread.of([10, 11, 12]), Spread.of([12, 13, 14])) == INSIDE
    assert compare(Spread.of([10, 11]), Spread.of([12, 13])) == LOWER
    assert compare(Spread.of([14, 15]), Spread.of([12, 13])) == HIGHER
    assert compare(Spread.of([1]), Spread.of([9, 9])) == UNKNOWN


def test_the_spread_is_from_lowest_to_highest_round():
    spread = Spread.of([3, 1, None, 2])
    assert (spread.median, spread.low, spread.high, spread.n) == (2, 1, 3, 3)
    assert Spread.of([None]) is None


class Row:
    def __init__(self, *values):
        self.spread = Spread.of(values)

    def get(self, _):
        return self.spread


def test_methods_inside_each_other_s_spread_are_both_best():
    row = {"apm-read": Row(10, 12), "apm-native": Row(11, 13), "gpspm-poll": Row(20, 21)}
    ranking = answer.ranked(row, "p50")
    assert answer.best_of(ranking) == ["apm-read", "apm-native"]


@pytest.mark.parametrize("best, floor, said", [
    ([40e3, 42e3], [20e3, 21e3], "costs a factor of 2"),
    ([40e3, 42e3], [39e3, 41e3], "nothing measurable"),
    ([40e3], [49e3], "lost in the noise"), ([40e3, 42e3], [49e3, 50e3], "lost in the noise")])
def test_no_cost_is_made_of_a_floor_above_the_flushed_write(best, floor, said):
    assert said in answer.flush_cost(Spread.of(best), Spread.of(floor))


def test_cpu_time_is_taken_between_two_moments():
    samples = [(0.0, 0.0, 1), (1.0, 0.5, 1), (2.0, 1.5, 1), (3.0, 1.5, 1)]
    assert children.cores(samples, 1.0, 2.0) == pytest.approx(1.0)
    assert children.cores(samples, 0.5, 1.5) == pytest.approx(0.75)
    assert children.cores(samples, 2.0, 3.0) == 0
    assert children.cores(samples[:1], 0, 1) is None
    assert children.cores(samples, -5, -4) is None
