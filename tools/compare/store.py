# SPDX-License-Identifier: BSD-3-Clause
"""The folder of a run: run.json, and for each point and round its job file, fio's JSON and messages.

DIR/run.json                     the plan, the machine, what is not available, what happened
DIR/points/KEY.rN/job.fio        as it was run
DIR/points/KEY.rN/fio.json       all that fio said
DIR/points/KEY.rN/messages.txt   its stderr
DIR/points/KEY.rN/point.json     status, reason, figures
DIR/servers/                     the same of servers on this machine
"""

import json
import os
import tempfile
from pathlib import Path

from . import CompareError

FORMAT = 1
DONE, FAILED = "done", "failed"


def write_json(path, data):
    """Whole or not at all, however we end."""
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as sink:
            json.dump(data, sink, indent=1, ensure_ascii=False)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read_json(path):
    try:
        with open(path, encoding="utf-8") as source:
            return json.load(source)
    except OSError as error:
        raise CompareError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise CompareError(f"{path}: not a JSON file of rpma-compare") from None


class Store:
    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.run = {}

    @classmethod
    def create(cls, folder, run):
        store = cls(folder)
        if (store.folder / "run.json").exists():
            raise CompareError(f"{folder} holds a run already; go on with --resume {folder}, "
                               "or name another folder with --output")
        try:
            for part in ("points", "servers"):
                (store.folder / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CompareError(f"{error.filename}: {error.strerror}") from None
        store.run = {"format": FORMAT, **run}
        store.save()
        return store

    @classmethod
    def open(cls, folder):
        store = cls(folder)
        store.run = read_json(store.folder / "run.json")
        if not isinstance(store.run, dict) or store.run.get("format") != FORMAT:
            raise CompareError(f"{folder}/run.json is not of this version of rpma-compare")
        (store.folder / "servers").mkdir(exist_ok=True)
        return store

    def save(self):
        write_json(self.folder / "run.json", self.run)

    def point_folder(self, key, number):
        return self.folder / "points" / f"{key}.r{number}"

    def begin_point(self, key, number, job):
        folder = self.point_folder(key, number)
        folder.mkdir(exist_ok=True)
        for old in ("point.json", "fio.json", "messages.txt"):
            (folder / old).unlink(missing_ok=True)
        (folder / "job.fio").write_text(job, encoding="utf-8")
        return folder

    def end_point(self, key, number, point):
        write_json(self.point_folder(key, number) / "point.json", point)

    def is_done(self, key, number):
        path = self.point_folder(key, number) / "point.json"
        return path.exists() and read_json(path).get("status") == DONE

    def results(self):
        """Every point ended so far, each with its job file's text."""
        for path in sorted((self.folder / "points").glob("*/point.json")):
            point = read_json(path)
            job = path.with_name("job.fio")
            point["job"] = job.read_text(encoding="utf-8") if job.exists() else ""
            yield point
