# SPDX-License-Identifier: BSD-3-Clause
"""Being asked to end: noted when the signal comes, acted on where nothing can be torn apart."""

import signal


class Interrupt:
    def __init__(self):
        self.asked = False

    def listen(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, *_):
        self.asked = True

    def check(self):
        if self.asked:
            raise KeyboardInterrupt
