"""Trains a network of benchmarks/peers/keras_nets.py on random rows.

usage: network.py NAME STEPS [BATCH...] [--clipnorm] [--accumulate N] [--local]

The steps take the batch sizes in turn; without any, the network's own. --clipnorm: clips the gradients' norms. --accumulate: updates the
variables once for N steps. --local: in two epochs of batches of the first size, of which each rank loads its rows only.
"""

import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks", "peers"))


def train_on_own_rows(model, net, random, steps, batch):
    """The last batch of an epoch has nine rows."""
    from syncline import distributed

    rows = max(steps // 2 - 1, 1) * batch + 9
    feeds, labels = net.feeds(random, rows), labels_of(random, rows)
    batches = distributed.ShardedSequence(lambda rows: ([feed[rows] for feed in feeds], labels[rows]), rows, batch)
    with distributed.local_feeds():
        model.fit_generator(batches, epochs=2, shuffle=False, verbose=0)


def labels_of(random, rows):
    import keras_nets

    return np.eye(keras_nets.CLASSES, dtype=np.float32)[random.integers(0, keras_nets.CLASSES, rows)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("steps", type=int)
    parser.add_argument("batch", type=int, nargs="*")
    parser.add_argument("--clipnorm", action="store_true")
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--local", action="store_true")
    args = parser.parse_args()
    np.random.seed(1)
    import keras
    import keras_nets

    net = keras_nets.NETS[args.name]
    model = net.build(keras)
    optimizer = keras.optimizers.Adam(0.001, **({"clipnorm": 1.0} if args.clipnorm else {}))
    if args.accumulate > 1:
        from syncline import distributed

        optimizer = distributed.accumulate_gradients(optimizer, args.accumulate)
    model.compile(optimizer, "categorical_crossentropy", ["accuracy"])
    random = np.random.default_rng(2)
    batches = args.batch or [net.batch]
    if args.local:
        train_on_own_rows(model, net, random, args.steps, batches[0])
    else:
        for step in range(args.steps):
            batch = batches[step % len(batches)]
            labels = labels_of(random, batch)
            model.train_on_batch(net.feeds(random, batch), labels)
    model.predict(net.feeds(random, net.batch), batch_size=net.batch)


if __name__ == "__main__":
    main()
