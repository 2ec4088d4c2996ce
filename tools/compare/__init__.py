# SPDX-License-Identifier: BSD-3-Clause
"""Compares ways of making remote data durable: the parts of rpma-compare.

plan      which points are measured            methods   what a method and a memory are
jobs      the fio job file of a point          fioresult what fio's JSON says
children  processes that always end            servers   the server's side of a run
runner    rounds over all points               store     the folder of a run
stats     median, spread, what differs         answer    the same in sentences
plots     figures                              report    the page, of pieces of html
machine   what it ran on                       diff      one run laid over another
cells     results by point                     palette   colours and markers
"""


class CompareError(Exception):
    """Something the user can put right; its text is one line for stderr."""
