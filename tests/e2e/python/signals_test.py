"""What the thread that hears of signals makes of them, without a job."""

import signal
import unittest
from unittest import mock

import lockstep
from lockstep import _native, _signals


class Heard(Exception):
    """All signals have been read."""


class Member:
    """Keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def stop(self, reason, at_once):
        self.asked.append((reason, at_once))


class SignalsTest(unittest.TestCase):

    def hear(self, numbers, getsignal):
        """The thread's loop with these signals; returns what it asks for."""
        member = Member()
        watched = _signals._Watched(member, Member.stop)
        with mock.patch.object(_signals, "_watched", watched), \
                mock.patch.object(signal, "getsignal", getsignal), \
                mock.patch("os.read", side_effect=[bytes(numbers), Heard]), \
                self.assertRaises(Heard):
            _signals._hear(0)
        return member.asked

    def test_a_second_signal_stops_at_once(self):
        self.assertEqual(
            self.hear([signal.SIGTERM] * 2, lambda _: _signals._on_sigterm),
            [("SIGTERM", False), ("SIGTERM", True)])

    def test_one_signal_that_the_main_thread_handles_meanwhile_counts_once(
            self):
        before = signal.getsignal(signal.SIGTERM)

        def getsignal(number):
            # The main thread comes between this call and what follows it.
            _signals._on_sigterm(number, None)
            return _signals._on_sigterm

        try:
            self.assertEqual(self.hear([signal.SIGTERM], getsignal),
                             [("SIGTERM", False)])
        finally:
            signal.signal(signal.SIGTERM, before)

    def test_an_evaluator_that_could_not_join_leaves_sigterm_to_the_program(
            self):
        before = signal.getsignal(signal.SIGTERM)
        code = "UNAVAILABLE", "the chief has a reason", 129
        for kind, joins in ((lockstep.JobFailed, {"return_value": code}),
                            (KeyboardInterrupt,
                             {"side_effect": KeyboardInterrupt})):
            native = mock.Mock(**{f"join.{key}": value
                                  for key, value in joins.items()})
            try:
                with self.subTest(kind), mock.patch.object(
                        _native, "Evaluation", return_value=native):
                    with self.assertRaises(kind):
                        lockstep.Evaluator(tf_config="cluster.json")
                    self.assertIsNone(_signals._watched)
            finally:
                signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
