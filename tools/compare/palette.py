# SPDX-License-Identifier: BSD-3-Clause
"""Colours and markers: one of each for a method, wherever it is drawn.

Figures are drawn in stand-in colours, which the page's style sheet then gives their light or dark
value.  A marker tells methods apart where a colour cannot.
"""

INKS = ("ink", "muted", "grid", "paper")

LIGHT = {"ink": "#1d2430", "muted": "#5a6372", "grid": "#e3e6ea", "paper": "#ffffff",
         "apm-native": "#0b62b8", "apm-read": "#b4500a", "gpspm-poll": "#0e7a5f",
         "gpspm-event": "#8a1f78", "no-flush": "#6a7280", "rdma-read": "#3d4756"}
DARK = {"ink": "#e8ebf0", "muted": "#a3acba", "grid": "#2c333d", "paper": "#171b21",
        "apm-native": "#6db7f7", "apm-read": "#f2a05c", "gpspm-poll": "#4fd0a6",
        "gpspm-event": "#f0b0e2", "no-flush": "#8c95a3", "rdma-read": "#cbd2dc"}

MARKERS = {"apm-native": "o", "apm-read": "s", "gpspm-poll": "^", "gpspm-event": "D",
           "no-flush": "v", "rdma-read": "o"}
DASHES = {"no-flush": (0, (4, 2))}

STAND_INS = {name: f"#0000{number:02x}" for number, name in enumerate(LIGHT, 1)}


def css(values):
    return " ".join(f"--{name}: {value};" for name, value in values.items())
