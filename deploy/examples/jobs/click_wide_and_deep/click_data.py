#!/usr/bin/env python3
"""Makes train.tfrecord and test.tfrecord of clicks on advertisements that follow
a logistic model, and prints how well that model itself tells them apart: the best
that a trained one can do.

The log-odds of a click are

    a term for each user, ad, site and device
    + one for each pair of site and device, which a weight for each can learn
    + taste[user] * topic[ad], of which no pair is seen often enough for that
    + 1.2 sin(2 pi hour), which is not linear

All categories are equally frequent and independent, as is the hour. Equal seeds
give equal files.
"""

import argparse
import functools
import math
import struct
import sys

USERS, ADS, SITES, DEVICES = 300, 200, 50, 6
BIAS = -1  # about a third is clicked
HOUR = 1.2
MAX_IMPRESSIONS = 1 << 32
MASK = 0xFFFFFFFFFFFFFFFF


def mersenne_twister(seed):
    """The numbers of mt19937_64, which C++ standardises; Python has its sibling
    of 32 bits only."""
    state = [seed]
    for i in range(1, 312):
        state.append(6364136223846793005 * (state[-1] ^ state[-1] >> 62) + i & MASK)
    while True:
        for i in range(312):
            x = state[i] & 0xFFFFFFFF80000000 | state[(i + 1) % 312] & 0x7FFFFFFF
            x = x >> 1 ^ (x & 1) * 0xB5026F5AA96619E9 ^ state[(i + 156) % 312]
            state[i] = x
            x ^= x >> 29 & 0x5555555555555555
            x ^= x << 17 & 0x71D67FFFEDA60000
            x ^= x << 37 & 0xFFF7EEE000000000
            yield x ^ x >> 43


class ClickModel:
    def __init__(self, seed):
        self.random = mersenne_twister(seed)
        self.of_user = self.normals(USERS, 0.5)
        self.of_ad = self.normals(ADS, 0.5)
        self.of_site = self.normals(SITES, 0.5)
        self.of_device = self.normals(DEVICES, 0.5)
        self.of_pair = self.normals(SITES * DEVICES, 0.8)
        self.taste = self.normals(USERS, 1.25)
        self.topic = self.normals(ADS, 1.25)

    def uniform(self):  # in [0, 1)
        return (next(self.random) >> 11) * 2.0**-53

    def normal(self):  # by Box and Muller
        length = math.sqrt(-2 * math.log(1 - self.uniform()))
        return length * math.cos(2 * math.pi * self.uniform())

    def normals(self, count, deviation):
        return [deviation * self.normal() for _ in range(count)]

    def draw(self):
        """(record, whether it is clicked, log-odds, what is wide of them): the
        wide part is the sum of the terms of features and of pairs of them."""
        user, ad, site, device = (int(self.uniform() * count)
                                  for count in (USERS, ADS, SITES, DEVICES))
        hour = self.uniform()
        wide = (BIAS + self.of_user[user] + self.of_ad[ad] + self.of_site[site] +
                self.of_device[device] + self.of_pair[site * DEVICES + device])
        odds = (wide + self.taste[user] * self.topic[ad] +
                HOUR * math.sin(2 * math.pi * hour))
        clicked = self.uniform() < 1 / (1 + math.exp(-odds))
        record = field(1, integer("ad", ad) + integer("clicked", int(clicked)) +
                       integer("device", device) +
                       entry("hour", field(2, field(1, struct.pack("<f", hour)))) +
                       text("site", f"site {site}") + text("user", f"user {user}"))
        return record, clicked, odds, wide


# The bytes of a tf.train.Example: fields that are shorter than 128 bytes.
def field(number, contents):
    assert len(contents) < 128
    return bytes((number << 3 | 2, len(contents))) + contents


def entry(name, feature):
    return field(1, field(1, name.encode()) + field(2, feature))


@functools.cache
def text(name, value):
    return entry(name, field(1, field(1, value.encode())))


@functools.cache
def integer(name, value):
    varint = bytes((value | 128, value >> 7)) if value >= 128 else bytes((value,))
    return entry(name, field(3, field(1, varint)))


def crc_of_byte(crc):
    for _ in range(8):
        crc = crc >> 1 ^ (crc & 1) * 0x82F63B78
    return crc


CRC_TABLE = [crc_of_byte(byte) for byte in range(256)]


def masked_crc(data):
    """CRC-32C as TFRecord files have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF)


@functools.cache
def header(size):
    return struct.pack("<Q", size) + masked_crc(struct.pack("<Q", size))


def area_under_curve(scored):
    """How often a positive one of the pairs (score, positive) has a higher score
    than a negative one, equal scores counting half."""
    won = negatives = positives = tied = 0
    last = None
    for score, positive in sorted(scored):  # of equal scores negative ones first
        tied = tied if score == last else 0
        last = score
        if positive:
            positives += 1
            won += negatives - tied / 2
        else:
            negatives += 1
            tied += 1
    return won / (positives * negatives) if positives and negatives else 0.5


def write(path, count, model):
    """Writes impressions; the AUC of their true log-odds and of the wide part."""
    everything, wide = [], []
    with open(path, "wb") as file:
        for _ in range(count):
            record, clicked, odds, of_wide = model.draw()
            everything.append((odds, clicked))
            wide.append((of_wide, clicked))
            file.write(header(len(record)) + record + masked_crc(record))
    return area_under_curve(everything), area_under_curve(wide)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", default=".", help="where the files go")
    parser.add_argument("--train", type=int, default=300000,
                        help="impressions to train on (default: %(default)s)")
    parser.add_argument("--test", type=int, default=50000,
                        help="impressions that are held out (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1,
                        help="of the parameters and the impressions")
    flags = parser.parse_args()
    if not (1 <= flags.train <= MAX_IMPRESSIONS and
            1 <= flags.test <= MAX_IMPRESSIONS and 0 <= flags.seed <= MASK):
        parser.error(f"--train and --test must be from 1 to {MAX_IMPRESSIONS}, "
                     f"--seed from 0 to {MASK}")
    try:
        model = ClickModel(flags.seed)
        write(f"{flags.directory}/train.tfrecord", flags.train, model)
        best, wide = write(f"{flags.directory}/test.tfrecord", flags.test, model)
    except OSError as error:
        sys.exit(f"click_data: {error}")
    print(f"{flags.train} impressions and {flags.test} held out, in "
          f"{flags.directory}; AUC of the true model on these: {best:.4f}, of its "
          f"wide part alone: {wide:.4f}")


if __name__ == "__main__":
    main()
