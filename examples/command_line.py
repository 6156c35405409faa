"""Shared by the examples' command lines: options, random seeds, exit codes, resuming from checkpoints."""

import argparse
import os
import random
import sys

import numpy as np


class DataError(Exception):
    """Data are missing or damaged; the message names the file and the remedy."""


def at_least(least):
    """An argparse type for whole numbers of at least `least`."""

    def number(text):
        value = int(text)
        if value < least:
            raise ValueError
        return value

    number.__name__ = f"whole number of at least {least}"  # argparse says: invalid whole number ... value: '0'
    return number


def options(description, epochs, batch_size, samples):
    """An argparse parser with the options that every example has, and these defaults."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--epochs", type=at_least(1), default=epochs, help="passes over the training set (%(default)s)")
    parser.add_argument("--batch-size", type=at_least(1), default=batch_size, help="of all ranks (%(default)s)")
    parser.add_argument("--samples", type=at_least(1), default=samples, help="of the training set (%(default)s)")
    parser.add_argument("--seed", type=at_least(0), default=1, help="of weights, data order, dropout (%(default)s)")
    parser.add_argument("--checkpoint", metavar="FOLDER",
                        help="write the model to FOLDER/epoch-0001.h5 and so on, and when a signal ends the training")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint if there is one")
    parser.add_argument("--history", metavar="FILE", help="write each epoch's losses and metrics to this CSV file")
    parser.add_argument("--verbose", type=int, choices=(0, 1, 2), default=2, help="what fit prints (%(default)s)")
    return parser


def parse(parser):
    """The arguments. The random generators of Python and NumPy, which Keras draws from, are seeded with --seed."""
    args = parser.parse_args()
    if args.resume and not args.checkpoint:
        parser.error("--resume needs --checkpoint")
    if args.checkpoint:
        try:
            os.makedirs(args.checkpoint, exist_ok=True)
        except OSError as error:
            parser.error(f"--checkpoint: {error}")
    random.seed(args.seed)
    np.random.seed(args.seed)
    return args


def callbacks(args):
    """Keras callbacks for --checkpoint and --history."""
    from keras.callbacks import CSVLogger

    result = []
    if args.history:
        result.append(CSVLogger(args.history, append=args.resume))
    if args.checkpoint:
        from syncline.jobs import Checkpoints

        result.append(Checkpoints(args.checkpoint))
    return result


def start(args, build, custom_objects=None):
    """(model, number of its finished epochs): from the last checkpoint with --resume, if there is one; otherwise (build(), 0)."""
    if args.resume:
        from syncline.jobs import load_latest

        found = load_latest(args.checkpoint, custom_objects)
        if found:
            model, epoch = found
            print(f"resumed {args.checkpoint} after epoch {epoch}")
            return model, epoch
    return build(), 0


def run(main):
    """Runs main(). After a DataError prints one line and ends the process with code 1; argparse uses 2."""
    try:
        main()
    except DataError as error:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {error}")
