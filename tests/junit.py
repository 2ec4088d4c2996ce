# SPDX-License-Identifier: BSD-3-Clause
"""What JUnit-style files, of pytest and of cmocka, say of the tests that ran."""

import xml.etree.ElementTree as ElementTree


def failure_of(case):
    return next((part for part in case if part.tag in ("failure", "error")), None)


def accident_of(case):
    """The failure of a test that passed at its second attempt, named as others' JUnit files do."""
    return case.find("flakyFailure")


def count(xml_files):
    """(passed, failed, skipped, passed at the second attempt only) of JUnit-style files."""
    passed = failed = skipped = again = 0
    for path in xml_files:
        for case in ElementTree.parse(path).iter("testcase"):
            if failure_of(case) is not None:
                failed += 1
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
                again += accident_of(case) is not None
    return passed, failed, skipped, again


def in_words(passed, failed, skipped, again):
    return (f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
            + (f", {again} of the passed only at the second attempt" if again else ""))
