"""The models of strategy_training: loss and gradients of one replica.

`linear` and `embedding` are written out, one operation of TensorFlow for each
rounding and from left to right, so that a plain program reproduces them bit for
bit. `softmax` is differentiated by TensorFlow.
"""

import tensorflow as tf


def _left_sum(terms):
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _rows(value):
    """The rows of a batch, whose size is known even within a tf.function."""
    return [value[i] for i in range(value.shape[0])]


def linear(variables, features, targets, batch):
    weights, bias = (variable.read_value() for variable in variables)
    prediction = _left_sum([features[:, j] * weights[j]
                            for j in range(features.shape[1])]) + bias
    distance = prediction - targets
    errors = _rows(distance / batch)
    loss = _left_sum([error * far for error, far in
                      zip(errors, _rows(distance))])
    half = tf.constant(0.5, loss.dtype)
    return loss * half, [
        _left_sum([error * row for error, row in
                   zip(errors, _rows(features))]), _left_sum(errors)]


def embedding(variables, ids, targets, batch):
    table, = variables
    errors = (tf.gather(table.read_value(), ids) - targets) / batch
    start = tf.constant(0, errors.dtype)
    loss = _left_sum([start] + [row[0] for row in _rows(errors)])
    shape = tf.constant(table.shape.as_list(), tf.int64)
    return loss, [tf.IndexedSlices(errors, ids, shape)]


def softmax(variables, features, targets, batch):
    with tf.GradientTape() as tape:
        weights, bias = variables
        logits = tf.matmul(features, weights) + bias
        loss = tf.reduce_sum(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                targets, logits)) / batch
    return loss, tape.gradient(loss, list(variables))


MODELS = {"linear": linear, "embedding": embedding, "softmax": softmax}
