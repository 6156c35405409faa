"""Trains a network of benchmarks/peers/keras_nets.py on random rows: network.py NAME STEPS [BATCH...] [--clipnorm] [--accumulate N].

The steps take the batch sizes in turn; without any, the network's own. --clipnorm: clips the gradients' norms. --accumulate: updates the
variables once for N steps.
"""

import argparse
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks", "peers"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("steps", type=int)
    parser.add_argument("batch", type=int, nargs="*")
    parser.add_argument("--clipnorm", action="store_true")
    parser.add_argument("--accumulate", type=int, default=1)
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
    for step in range(args.steps):
        batch = args.batch[step % len(args.batch)] if args.batch else net.batch
        labels = np.eye(keras_nets.CLASSES, dtype=np.float32)[random.integers(0, keras_nets.CLASSES, batch)]
        model.train_on_batch(net.feeds(random, batch), labels)
    model.predict(net.feeds(random, net.batch), batch_size=net.batch)


if __name__ == "__main__":
    main()
