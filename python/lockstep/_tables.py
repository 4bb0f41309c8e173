"""What a table is, as programs describe it, for all kinds of workers."""

import math

from . import _base

# Kinds of common/plan/variable_spec.h.
_CONSTANT, _NORMAL = 0, 2
_MOD, _KEY = 2, 3


def _whole(what, value):
    """Returns a number as int; TypeError: it is no integer."""
    try:
        if int(value) == value:
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(f"{what} is {value!r}; give an integer")


class Described:
    """A table's sizes, and the initial values that servers draw.

    Attributes:
      rows: number of rows; of a table that grows, the limit.
      grows: rows have keys, and are created when they are first looked up.
      width: shape of a row.
      mean, std: of the normal distribution of initial values.
    """

    def _describe_as(self, what, rows, row_limit, width, mean, std):
        """Sets the attributes.

        Args:
          what: "a table", for messages.
          rows, row_limit: one of them, the other None.
          width: the elements of a row, integers.

        Raises:
          TypeError: sizes that are no integers.
          ValueError: sizes or a distribution that are not possible.
        """
        if (rows is None) == (row_limit is None):
            raise ValueError(f"{what} has either rows= or row_limit=")
        self.grows = rows is None
        self.rows = _whole("row_limit" if self.grows else "rows",
                           row_limit if self.grows else rows)
        self.width = tuple(_whole("dim", size) for size in width)
        # The native module takes them as int64.
        if not self.width or not all(0 < size < 2**63
                                     for size in (self.rows, *self.width)):
            raise ValueError(
                f"a table of {self.rows} rows of "
                f"{', '.join(map(str, self.width))} elements cannot be; the "
                "numbers must be above 0 and below 2**63")
        self.mean, self.std = float(mean), float(std)
        if not 0 <= self.std < math.inf:
            raise ValueError(
                f"std is {self.std}; it must be 0 or more, and finite")
        if not math.isfinite(self.mean):
            raise ValueError(f"mean is {self.mean}; it must be finite")

    def _described(self, name):
        """The table as the native module takes it."""
        drawn = ((_NORMAL, self.mean, self.std) if self.std > 0
                 else (_CONSTANT, self.mean, 0.0))
        return _base.described(
            name, (self.rows,) + self.width, "float32", drawn=drawn,
            cut=_KEY if self.grows else _MOD)

    def _rows_at_hand(self, variable, name):
        """The rows of the table that a worker has."""
        return _base.TableRows(variable, name, self.rows, self.width,
                               self.grows)
