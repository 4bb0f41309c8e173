"""Models without values are neither trained nor loaded."""

import sys
import unittest

import numpy as np

try:
    import torch
except ImportError:
    print("SKIPPED, NOTHING WAS PROVED: this interpreter has no torch (Debian: python3-torch)")
    sys.exit(77)

from lockstep._torch_describe import describe
from lockstep._torch_load import fill, shared_buffers


def ones(*shape):
    return "F32", shape, np.ones(shape, np.float32).reshape(-1).view(np.uint8)


class LoadTest(unittest.TestCase):

    def test_a_model_on_the_meta_device_is_not_trained(self):
        with self.assertRaisesRegex(ValueError, 'parameter "w" is on the device "meta'):
            describe("parameter", "w", torch.zeros(2, device="meta"), False)
        norm = torch.nn.BatchNorm1d(2, affine=False).to("meta")
        with self.assertRaisesRegex(ValueError,
                                    'buffer "running_mean" is on the device "meta'):
            shared_buffers(norm)

    def test_a_model_on_the_meta_device_is_not_loaded(self):
        saved = {"weight": ones(2, 3), "bias": ones(2)}
        model = torch.nn.Linear(3, 2)
        fill(model, 5, saved)
        self.assertTrue(torch.equal(model.weight, torch.ones(2, 3)))
        with self.assertRaisesRegex(ValueError, '"weight" is on the device "meta'):
            fill(model.to("meta"), 5, saved)

    def test_a_sparse_buffer_stays_as_it_is(self):
        for sparse in torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr():
            model = torch.nn.Linear(3, 2)
            model.register_buffer("graph", sparse)
            with self.assertWarnsRegex(RuntimeWarning, 'has no "graph"'):
                fill(model, 5, {"weight": ones(2, 3), "bias": ones(2)})
            self.assertTrue(torch.equal(model.bias, torch.ones(2)))

    def test_a_parameter_without_a_shape_is_named(self):
        with self.assertRaisesRegex(ValueError, '"weight" has no shape yet'):
            fill(torch.nn.LazyLinear(2), 5, {"weight": ones(2, 3)})


if __name__ == "__main__":
    unittest.main(verbosity=2)
