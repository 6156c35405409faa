"""The states of the global random numbers of a program: those of `random` and `numpy.random`."""

import random

import numpy as np


def random_states():
    return random.getstate(), np.random.get_state()


def set_random_states(states):
    """Sets the states that random_states has returned. None: changes nothing."""
    if states is not None:
        random.setstate(states[0])
        np.random.set_state(states[1])
