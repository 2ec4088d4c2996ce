# SPDX-License-Identifier: BSD-3-Clause
"""Plans and selection files."""

import pytest

from compare import CompareError, jobs, methods, plan as plans, units
from compare.runner import Target


def from_text(tmp_path, text):
    path = tmp_path / "plan.ini"
    path.write_text(text)
    return plans.from_file(path)


def test_a_selection_file_selects_and_sizes_experiments(tmp_path):
    plan = from_text(tmp_path, "[run]\nrounds = 7\nruntime = 1m\nmethods = apm-read, gpspm-poll\n"
                               "[threads]\nvalues = 1, 16\nblock_size = 64k ; big\n")
    assert (plan.rounds, plan.runtime) == (7, 60)
    assert [e.key for e in plan.experiments] == ["threads"]
    points = plan.points(plan.all_series())
    assert {(p.threads, p.block_size) for p in points} == {(1, 65536), (16, 65536)}
    assert {p.method for p in points} == {"apm-read", "gpspm-poll"}


def test_without_a_section_of_an_experiment_all_are_measured(tmp_path):
    assert len(from_text(tmp_path, "[run]\nrounds=1\n").experiments) == len(plans.CATALOGUE)


@pytest.mark.parametrize("text, said", [
    ("[run]\nrounds = many\n", "[run] rounds: 'many' is not a number from 1 to 1000"),
    ("[run]\nruntime = -1\n", "[run] runtime: '-1' is not a time"),
    ("[run]\nruntime = 1ms\n", "[run] runtime: '1ms' is not from 0.05 s to 86400 s"),
    ("[run]\nspeed = 1\n", "[run] speed: unknown option (known: rounds"),
    ("[run]\nmethods = apm\n", "[run] methods: 'apm' is not a method (known: apm-native"),
    ("[run]\nmemories =\n", "[run] memories: no memory given"),
    ("[latency]\n", "[latency]: no such experiment (known: latency-seq"),
    ("[latency-seq]\nvalues = 64, 3q\n", "[latency-seq] values: '3q' is not a size"),
    ("[latency-seq]\nvalues = 0\n", "[latency-seq] values: '0' is not a size"),
    ("[latency-seq]\nvalues = 99999999999999\n", "[latency-seq] values: '99999999999999' is not"),
    ("[iodepth]\nvalues = 5000\n", "[iodepth] values: '5000' is not a number from 1 to 4096"),
    ("[iodepth]\niodepth = 5\n", "[iodepth] iodepth: unknown option"),
    ("[threads]\nvalues = 65\n", "[threads] values: '65' is not a number from 1 to 64"),
    ("[run]\nsize = 64k\n[latency-seq]\n", "does not fit the workspace of 64 KiB"),
    ("rounds = 1\n", "no section headers"),
    ("[run]\nrounds = 1\n[run]\n", "already exists"),
])
def test_a_wrong_selection_file_is_told_in_one_line(tmp_path, text, said):
    with pytest.raises(CompareError) as error:
        from_text(tmp_path, text)
    message = str(error.value)
    assert said in message and "plan.ini" in message and "\n" not in message


def test_a_missing_or_binary_selection_file_is_told_in_one_line(tmp_path):
    with pytest.raises(CompareError, match="No such file"):
        plans.from_file(tmp_path / "none.ini")
    (tmp_path / "binary.ini").write_bytes(b"\xff\xfe\x00[run]")
    with pytest.raises(CompareError) as error:
        plans.from_file(tmp_path / "binary.ini")
    assert "\n" not in str(error.value)


def test_methods_stand_side_by_side_and_loaded_points_last():
    plan = plans.Plan()
    points = plan.points([(m, "dram") for m in plan.methods])
    width = len(plan.methods)
    for i in range(0, len(points), width):
        assert [p.method for p in points[i:i + width]] == plan.methods
        assert len({(p.experiment, p.value) for p in points[i:i + width]}) == 1
    loaded = [p.loaded for p in points]
    assert any(loaded) and loaded == sorted(loaded)


def test_the_quick_set_keeps_within_a_minute_on_one_memory():
    plan = plans.quick()
    series = [(m, "dram") for m in plan.methods] + [("rdma-read", "dram")]
    assert plan.budget <= 50
    assert plan.seconds(plan.points(series)) / plan.rounds < 30  # one round, come what may


def test_a_plan_survives_being_kept():
    plan = plans.quick()
    assert plans.Plan.from_dict(plan.as_dict()) == plan


def test_no_two_servers_share_a_port():
    base = methods.DEFAULT_PORT
    first = [methods.server_port(base, memory, server)
             for memory in methods.MEMORIES for server in methods.SERVERS]
    taken = [port for f in first for port in range(f, f + methods.PORTS_PER_SERVER)]
    taken += [methods.bell_port(base, True), methods.bell_port(base, False),
              methods.state_port(base, True), methods.state_port(base, False)]
    assert len(taken) == len(set(taken))
    assert max(taken) == methods.last_port(base)


def test_a_job_file_says_all_that_a_point_is():
    point = next(p for p in plans.Plan().points([("apm-read", "devdax")])
                 if p.experiment == "mix-rand" and p.iodepth == 16)
    text = jobs.client(point, Target("10.0.0.1", 7204))
    for line in ("ioengine=librpma_apm_client", "serverip=10.0.0.1", "flush_mode=read", "rw=randrw",
                 "rwmixread=70", "iodepth=16", "bs=4k", "runtime=3000ms", "ramp_time=1000ms",
                 f"port={methods.server_port(7204, 'devdax', 'apm')}"):
        assert line in text.splitlines()


def test_servers_are_made_for_the_most_a_plan_asks():
    text = jobs.server("gpspm-event", "dram", plans.Plan(), "malloc", Target("10.0.0.1", 7204))
    for line in ("iodepth=128", "numjobs=8", "busy_wait_polling=0", "clients=0"):
        assert line in text.splitlines()


@pytest.mark.parametrize("value, text", [(64, "64 B"), (4096, "4 KiB"), (1 << 20, "1 MiB")])
def test_sizes_are_written_as_people_write_them(value, text):
    assert units.size(value) == text
    assert units.parse_size(units.fio_size(value)) == value


@pytest.mark.parametrize("value, text", [
    (950, "0.950 µs"), (18431, "18.4 µs"), (9_994_000, "9,994 µs"), (12_340_000, "12.3 ms")])
def test_latencies_have_three_digits_and_a_unit(value, text):
    assert units.latency(value) == text
