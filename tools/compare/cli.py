# SPDX-License-Identifier: BSD-3-Clause
"""The commands of rpma-compare."""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from . import CompareError, children, machine, plan as plans, units
from .interrupt import Interrupt
from .methods import DEFAULT_PORT, last_port
from .runner import Runner, Target
from .servers import Servers, check_places
from .store import Store

MOST_PORT = 65535


def parser():
    top = argparse.ArgumentParser(
        prog="rpma-compare", description="Compares ways of making remote data durable.")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="measure, on the client's host, and write the report")
    run.add_argument("address", nargs="?", help="where rpma-compare serve runs "
                     "(default: both sides on this machine)")
    _common(run)
    run.add_argument("--wait", type=_time, default=30, metavar="TIME",
                     help="how long to look for the servers at ADDRESS (30s)")
    run.add_argument("--resume", type=Path, metavar="DIR", help="go on with the run in DIR")
    run.add_argument("--no-report", action="store_true",
                     help="only measure; where there is no matplotlib (see report)")
    run.add_argument("--list", action="store_true", help="show what would be measured, and end")

    serve = commands.add_parser("serve", help="serve, on the server's host, until Ctrl-C")
    serve.add_argument("address", nargs="?", help="this host's address for clients to come to "
                       "(default: that of its RDMA device)")
    _common(serve)

    report = commands.add_parser("report", help="write a run's report again")
    report.add_argument("dir", type=Path)
    report.add_argument("--server", type=Path, metavar="FILE",
                        help="serve.json of the other side, for its CPU time and machine")

    diff = commands.add_parser("diff", help="lay run B over run A")
    diff.add_argument("a", type=Path, metavar="A")
    diff.add_argument("b", type=Path, metavar="B")
    diff.add_argument("--output", type=Path, default=Path("rpma-compare-diff.html"),
                      metavar="FILE", help="the page to write (rpma-compare-diff.html)")
    return top


def _common(command):
    command.add_argument("--quick", action="store_true", help="the set of under one minute")
    command.add_argument("--plan", type=Path, metavar="FILE",
                         help="selects and sizes experiments; the same file on both sides")
    command.add_argument("--port", type=int, default=DEFAULT_PORT, help="the first port (7204)")
    command.add_argument("--devdax", metavar="DEVICE", help="a device DAX for servers here to use")
    command.add_argument("--fsdax", metavar="PATH",
                         help="a folder or file of a DAX file system for servers here to use")
    command.add_argument("--output", type=Path, metavar="DIR", help="where to keep the results")
    command.add_argument("--fio", metavar="PROGRAM", help="fio with the engines (rpma-fio)")


def _time(text):
    try:
        return units.parse_time(text)
    except CompareError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def find_fio(given):
    """The fio to run: the one given, else rpma-fio beside this program or in PATH."""
    beside = Path(sys.argv[0]).resolve().parent / "rpma-fio"
    choice = given or (str(beside) if beside.exists() else "rpma-fio")
    found = shutil.which(choice)
    if not found:
        raise CompareError(f"{choice}: no such program; name a fio that has the engines by --fio")
    return os.path.abspath(found)


def chosen_plan(args):
    if args.quick and args.plan:
        raise CompareError("--quick and --plan exclude each other")
    if args.quick:
        return plans.quick()
    return plans.from_file(args.plan) if args.plan else plans.Plan()


def checked_port(port):
    if not 1 <= port or last_port(port) > MOST_PORT:
        raise CompareError(f"--port {port}: {last_port(port) - port + 1} ports from there on are "
                           f"needed, so at most {MOST_PORT - last_port(0)}")
    return port


def show_plan(plan):
    points = plan.points(plan.all_series())
    for e in plan.experiments:
        count = sum(p.experiment == e.key for p in points)
        print(f"{e.key:15} {count:4} points a round  {e.title}; {e.axis}: "
              f"{', '.join(str(v) for v in e.values)}")
    print(f"{len(points)} points, {plan.rounds} rounds, if every method and memory is there: "
          f"{units.duration(plan.seconds(points))}")


def command_run(args):
    if args.list:
        show_plan(chosen_plan(args))
        return 0
    if args.no_report:
        report = None
    else:
        from . import report  # needs matplotlib: missing, that is said before an hour of measuring
    fio = find_fio(args.fio)
    if args.resume:
        if args.quick or args.plan or args.address or args.output:
            raise CompareError("--resume takes plan, address and folder from the run it goes on with")
        data = Store.open(args.resume)
        plan = plans.Plan.from_dict(data.run["plan"])
        local = data.run["local"]
        target = Target(**data.run["target"])
        places = check_places(*(data.run["places"].get(m) for m in ("devdax", "fsdax")))
    else:
        plan, local = chosen_plan(args), not args.address
        target = Target(args.address or machine.local_address(), checked_port(args.port))
        places = check_places(args.devdax, args.fsdax)
        folder = args.output or Path(time.strftime("rpma-compare-%Y%m%d-%H%M%S"))
        data = Store.create(folder, _about(plan, local, target, places, fio))
    return measure(data, plan, local, target, places, fio, args.wait, report)


def _about(plan, local, target, places, fio):
    return {"plan": plan.as_dict(), "local": local, "target": vars(target), "places": places,
            "began": time.time(), "state": "running", "events": [], "unavailable": [],
            "machine": machine.facts(fio, target.address), "busy": machine.busy_cores(),
            "memory": {m: machine.memory_facts(m, p) for m, p in places.items()
                       if local and m in plan.memories}}


def measure(data, plan, local, target, places, fio, wait, report):
    state = "ended early"
    interrupt = Interrupt()
    interrupt.listen()
    try:
        with children.CpuSampler() as sampler:
            if local:
                with Servers(fio, plan, target, places, data.folder / "servers", sampler) as servers:
                    servers.start()
                    Runner(data, plan, target, fio, sampler, interrupt, servers).run()
            else:
                Runner(data, plan, target, fio, sampler, interrupt).run(wait)
        state = "complete"
    except KeyboardInterrupt:
        state = "interrupted"
        print(f"rpma-compare: interrupted; go on with: rpma-compare run --resume {data.folder}",
              file=sys.stderr)
    finally:
        data.run.update(state=state, ended=time.time())
        data.save()
    results = list(data.results())
    if not results:
        raise CompareError("nothing was measured, so there is no report")
    print(report.write(data, results) if report else data.folder)
    if state == "interrupted":
        return 130
    return 1 if any(r["status"] == "failed" for r in results) else 0


def command_serve(args):
    from . import serve
    target = Target(args.address or machine.local_address(), checked_port(args.port))
    folder = args.output or Path(time.strftime("rpma-serve-%Y%m%d-%H%M%S"))
    interrupt = Interrupt()
    interrupt.listen()
    try:
        serve.serve(find_fio(args.fio), chosen_plan(args), target,
                    check_places(args.devdax, args.fsdax), folder, interrupt)
    except KeyboardInterrupt:
        pass
    return 0


def command_report(args):
    from . import report
    data = Store.open(args.dir)
    if args.server:
        report.join_server(data, args.server)
    print(report.write(data, list(data.results())))
    return 0


def command_diff(args):
    from . import diff
    print(diff.write(args.a, args.b, args.output))
    return 0


def main():
    args = parser().parse_args()
    try:
        return globals()[f"command_{args.command}"](args)
    except CompareError as error:
        print(f"rpma-compare: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        print(f"rpma-compare: Python's {error.name} is missing (Debian: python3-{error.name})",
              file=sys.stderr)
        return 2
