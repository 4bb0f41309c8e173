"""Tests of the scripts that make the data of the example jobs:

    example_data_test.py JOBS

JOBS is the folder of the jobs.
"""

import hashlib
import math
import sys
import unittest

sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/click_wide_and_deep"]

import bible_data  # noqa: E402
import click_data  # noqa: E402


class BibleDataTest(unittest.TestCase):
    def test_the_first_39_books_are_the_old_testament(self):
        lines = []
        for book in range(41):
            name = b"B%c%s" % (97 + book % 26, b"x" if book >= 26 else b"")
            lines += [name + b"1:1 In the\n", name + b"2:1 end\n"]
        verses = bible_data.read_verses(lines)
        self.assertEqual(len(verses), 82)
        self.assertEqual(verses[0], (b"In the", True))
        self.assertTrue(verses[77][1])
        self.assertFalse(verses[78][1])

    def test_books_may_begin_with_a_number(self):
        self.assertEqual(bible_data.read_verses([b"1Sam3:4 That the LORD\n"]),
                         [(b"That the LORD", True)])

    def test_lines_that_are_no_verse_are_named(self):
        for line in b"Genesis 1", b"Ge1:1", b"12:1 x", b":":
            with self.assertRaisesRegex(ValueError, "^line 2 is "):
                bible_data.read_verses([b"Ge1:1 In\n", line + b"\n"])
        with self.assertRaisesRegex(ValueError, "no verse"):
            bible_data.read_verses([])

    def test_words_and_pairs_are_features(self):
        line = bible_data.libsvm_line(b"Let it, let", True, 1 << 20)
        # let twice, it, "let it", "it let"; 2 / sqrt(4 + 1 + 1 + 1)
        self.assertEqual(line, "+1 95188:0.377964 640307:0.377964 "
                               "874313:0.377964 998454:0.755929\n")
        self.assertEqual(line, bible_data.libsvm_line(b"LET it let!", True, 1 << 20))

    def test_one_of_ten_is_held_out(self):
        held_out = sum(map(bible_data.is_held_out, range(10000)))
        self.assertTrue(900 < held_out < 1100, held_out)


class ClickDataTest(unittest.TestCase):
    def test_numbers_are_those_of_mt19937_64(self):
        numbers = click_data.mersenne_twister(5489)
        for _ in range(9999):
            next(numbers)
        # That which the standard of C++ names: the 10000th.
        self.assertEqual(next(numbers), 9981545732273789042)

    def test_records_follow_from_the_seed(self):
        one, same, other = map(click_data.ClickModel, (1, 1, 2))
        records = [one.draw() for _ in range(100)]
        self.assertEqual(records, [same.draw() for _ in range(100)])
        self.assertNotEqual(records, [other.draw() for _ in range(100)])
        # What the job was scored on began like this.
        digest = hashlib.sha256(b"".join(r[0] for r in records)).hexdigest()
        self.assertEqual(digest[:16], "db8fffadfd882443")

    def test_checks_are_those_of_tfrecord(self):
        crc = 0xE3069283  # of RFC 3720's polynomial, as catalogues of it say
        masked = (crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF
        self.assertEqual(click_data.masked_crc(b"123456789"),
                         masked.to_bytes(4, "little"))

    def test_clicks_are_as_often_as_the_log_odds_say(self):
        model = click_data.ClickModel(3)
        expected, clicks = [0.0] * 10, [0] * 10
        scored, wide = [], []
        for _ in range(20000):
            _, clicked, odds, of_wide = model.draw()
            p = 1 / (1 + math.exp(-odds))
            expected[int(10 * p)] += p
            clicks[int(10 * p)] += clicked
            scored.append((odds, clicked))
            wide.append((of_wide, clicked))
        for e, c in zip(expected, clicks):
            self.assertAlmostEqual(c, e, delta=5 * math.sqrt(e))
        # What is not wide tells more apart.
        self.assertGreater(click_data.area_under_curve(scored),
                           click_data.area_under_curve(wide) + 0.05)

    def test_equal_scores_count_half(self):
        self.assertEqual(click_data.area_under_curve(
            [(0, False), (1, False), (1, True), (2, True)]), 3.5 / 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
