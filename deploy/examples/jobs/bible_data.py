#!/usr/bin/env python3
"""Makes train.libsvm, test.libsvm and verses.txt of what `bible -f gen1:1-rev22:21`
prints, which is read from the standard input: a verse a line, "Ge1:1 In the
beginning ...". The first 39 books are the Old Testament.
"""

import argparse
import functools
import itertools
import math
import re
import struct
import sys
from collections import Counter

OLD_BOOKS = 39
MAX_FEATURES = 1 << 40
PLACE = re.compile(rb"([^ :]*[^ :0-9])[0-9]+:[^ ]* (.*)")
WORD = re.compile(rb"[a-z]+(?:'[a-z]+)*")


def fingerprint(data):
    """Fingerprint::value() of common/base/fingerprint.h: FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


@functools.cache
def feature_of(words, features):
    value = fingerprint(len(words).to_bytes(8, "little") + words)
    value = (value ^ value >> 32) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return 1 + (value >> 20) % features


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def read_verses(lines):
    """(text, whether it is of the Old Testament) of each verse, in order."""
    verses, books, book = [], 0, None
    for number, line in enumerate(lines, 1):
        line = line.rstrip(b"\n")
        if not line:
            continue
        match = PLACE.fullmatch(line)
        if match is None:
            start = line[:40].decode(errors="replace")
            raise ValueError(f'line {number} is "{start}"; give what '
                             "`bible -f gen1:1-rev22:21` prints")
        books += match[1] != book
        book = match[1]
        verses.append((match[2], books <= OLD_BOOKS))
    if not verses:
        raise ValueError(
            "there is no verse; give what `bible -f gen1:1-rev22:21` prints, of "
            "the packages bible-kjv and bible-kjv-text")
    return verses


def libsvm_line(text, old, features):
    """A verse as a line of LIBSVM, features from 1 on: its words and pairs of
    neighbouring words, by the hash of each, as often as they occur, and of
    length 1 all together."""
    words = WORD.findall(text.lower())
    pairs = (a + b" " + b for a, b in itertools.pairwise(words))
    counts = Counter(feature_of(w, features)
                     for w in itertools.chain(words, pairs))
    length = math.sqrt(sum(count * count for count in counts.values()))
    return " ".join(["+1" if old else "-1"] + [
        f"{feature}:{float32(count / length):.6g}"
        for feature, count in sorted(counts.items())]) + "\n"


def is_held_out(index):
    """One of ten, by hash, is for testing."""
    return (fingerprint(index.to_bytes(8, "little")) >> 32) % 10 == 0


def make_data(flags):
    verses = read_verses(sys.stdin.buffer)
    # Of a short form, verses from all over the book.
    step = max(1, len(verses) // flags.limit) if flags.limit else 1
    with open(f"{flags.directory}/train.libsvm", "w") as train, \
            open(f"{flags.directory}/test.libsvm", "w") as test, \
            open(f"{flags.directory}/verses.txt", "wb") as texts:
        for i in range(0, len(verses), step):
            text, old = verses[i]
            file = test if is_held_out(i) else train
            file.write(libsvm_line(text, old, flags.features))
            texts.write(text + b"\n")
    taken = f"of which one in {step} is taken, " if step > 1 else ""
    print(f"{len(verses)} verses, {taken}in {flags.directory}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", default=".", help="where the files go")
    parser.add_argument("--features", type=int, default=1 << 20,
                        help="how many features words and pairs of words are "
                        "hashed to (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=0,
                        help="take about so many verses, from all over the "
                        "book; 0: all")
    flags = parser.parse_args()
    if not 1 <= flags.features <= MAX_FEATURES or flags.limit < 0:
        parser.error(f"--features must be from 1 to {MAX_FEATURES}, --limit not "
                     "below 0")
    try:
        make_data(flags)
    except (OSError, ValueError) as error:
        sys.exit(f"bible_data: {error}")


if __name__ == "__main__":
    main()
