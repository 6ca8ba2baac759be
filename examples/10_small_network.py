"""
A small neural network
======================

A loss of your own is a class with ``value`` and ``gradient``; here, a layer of 16 hidden units.
"""

import numpy as np
from scipy.special import log_softmax, softmax

from peerlearn import GradientTracking, SimulatedNetwork, data, graphs, partition


class CrossEntropy:  # w has one row per agent, with all weights of that agent
    def __init__(self, shares, rows):
        self.X = np.stack([np.hstack([X, np.ones((len(X), 1))]) for X, _ in shares])
        self.Y = np.stack([np.eye(10)[y] for _, y in shares]) / rows
        self.agents, self.dimension = len(shares), (self.X.shape[2] + 10) * 16

    def layers(self, w):
        A, B = np.split(w, [self.X.shape[2] * 16], axis=1)
        H, B = np.tanh(self.X @ A.reshape(len(w), -1, 16)), B.reshape(-1, 16, 10)
        return H, B, H @ B

    def value(self, w):
        return -(self.Y * log_softmax(self.layers(w)[2], axis=2)).sum(axis=(1, 2))

    def gradient(self, w):
        H, B, Z = self.layers(w)
        E = softmax(Z, axis=2) * self.Y.sum(axis=2, keepdims=True) - self.Y
        A, B = self.X.mT @ ((1 - H**2) * (E @ B.mT)), H.mT @ E
        return np.hstack([A.reshape(len(w), -1), B.reshape(len(w), -1)])


digits = data.load("digits")
loss = CrossEntropy(partition.even(digits.X[:1500], digits.y[:1500], 5, seed=0), rows=1500)
w = np.tile(0.1 * np.random.default_rng(0).standard_normal(loss.dimension), (5, 1))
found = GradientTracking(tolerance=1e-2).minimise(SimulatedNetwork(graphs.ring(5)), loss, 1e-3, w)
outputs = CrossEntropy([(digits.X[1500:], digits.y[1500:])], 297).layers(found.coefficients[:1])[2]
print(np.mean(outputs[0].argmax(axis=1) == digits.y[1500:]), "of new digits are right")
