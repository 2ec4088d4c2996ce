# SPDX-License-Identifier: BSD-3-Clause
"""How far a run is: a bar with the time left on a terminal, plain lines elsewhere."""

import shutil
import sys
import time

from . import units

BAR = 24


class Progress:
    def __init__(self, total, seconds, stream=None):
        self.total, self.estimate = total, seconds
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.done, self.spent, self.planned = 0, 0.0, 0.0

    def left(self):
        """Seconds still to go: the plan's, put right by how long the points so far took."""
        remaining = max(0.0, self.estimate - self.planned)
        return remaining * (self.spent / self.planned if self.planned else 1)

    def begin(self, what):
        if self.terminal:
            self._bar(what)

    def end(self, what, outcome, seconds, planned):
        self.done += 1
        self.spent += seconds
        self.planned += planned
        if self.terminal:
            self._bar(f"{what}: {outcome}")
        else:
            self._line(f"{self.done}/{self.total} {what}: {outcome} "
                       f"({units.duration(self.left())} left)")

    def skip(self, count, seconds):
        """Points that need no run after all."""
        self.total -= count
        self.estimate -= seconds

    def note(self, text):
        """A line that stays."""
        if self.terminal:
            self.stream.write("\r\033[K")
        self._line(text)

    def close(self):
        if self.terminal:
            self.stream.write("\r\033[K")
            self.stream.flush()

    def _line(self, text):
        self.stream.write(f"rpma-compare: {text}\n")
        self.stream.flush()

    def _bar(self, what):
        part = self.done / self.total if self.total else 1
        filled = int(BAR * part)
        text = (f"[{'#' * filled}{'.' * (BAR - filled)}] {self.done}/{self.total}  "
                f"{units.duration(self.left())} left  {what}")
        width = max(20, shutil.get_terminal_size().columns - 1)
        self.stream.write("\r\033[K" + text[:width])
        self.stream.flush()


def elapsed(started):
    return time.monotonic() - started
