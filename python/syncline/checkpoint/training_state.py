"""What a Keras training has beside the weights of its model and optimizer: random numbers, the order of the rows, the callbacks'
attributes, accumulated gradients, states of layers, and what an epoch has summed so far. A checkpoint holds it in the group
`training_state`, so a resumed training has the bits of an unbroken one.

A training that resumes within an epoch replays the finished batches: the loop takes them, but their step is not computed, and only the
callbacks that average and print see their logs. The other callbacks have their attributes from the checkpoint.
"""

import contextlib
import json
import threading
from array import array

import h5py
import numpy as np
from keras import backend as K
from keras.callbacks import BaseLogger, CallbackList, EarlyStopping, History, ProgbarLogger
from keras.engine import training_arrays

from syncline import _core
from syncline.distribution import ranks
from syncline.distribution.accumulation import accumulate_gradients
from syncline.plain_values import ChangedAttributes, checksum, checksum_of, decode, encode, put
from syncline.random_states import random_states, set_random_states

_GROUP, _VERSION = "training_state", 1
_OF_KERAS = {"model", "params", "validation_data"}  # attributes of a callback that Keras sets


def write(file, values):
    """Writes the values of TrainingState.values() to an open HDF5 file."""
    arrays = []
    text = json.dumps(encode(values, arrays))
    group = file.create_group(_GROUP)
    group.attrs["version"], group.attrs["checksum"] = _VERSION, checksum_of(text, arrays)
    group["values"] = np.frombuffer(text.encode(), np.uint8)
    for number, value in enumerate(arrays):
        group[f"arrays/{number}"] = value


def read(file):
    """The values that `write` was given; None if the file has none.

    Args:
        file: a path, or a binary file.
    Raises:
        ValueError: a later version wrote them, or they are damaged.
    """
    with h5py.File(file, "r") as opened:
        group = opened.get(_GROUP)
        if group is None:
            return None
        if group.attrs["version"] > _VERSION:
            raise ValueError(f"a later version of Syncline wrote it: its state has version {group.attrs['version']}")
        text = group["values"][()].tobytes().decode()
        arrays = [np.asarray(group[f"arrays/{number}"][()]) for number in range(len(group.get("arrays", ())))]
        if checksum_of(text, arrays) != group.attrs["checksum"]:
            raise ValueError(f"the group '{_GROUP}' is damaged: its checksum is wrong")
        return decode(json.loads(text), arrays)


def accumulate_again(model, values):
    """Gives a loaded model an optimizer that accumulates gradients if the saved one did."""
    if values is None or values["accumulated"] is None:
        return
    optimizer = model.optimizer
    weights = optimizer.get_weights()
    steps, _ = values["accumulated"]
    model.optimizer = accumulate_gradients(type(optimizer).from_config(optimizer.get_config()), steps)
    model.train_function = None
    model._make_train_function()
    model.optimizer.set_weights(weights)


def _set_values(variables, values):
    if [K.int_shape(variable) for variable in variables] == [np.shape(value) for value in values]:
        K.batch_set_value(list(zip(variables, values)))


class TrainingState:
    """The state of one fit.

    Args:
        model: that fit trains.
        sequence: the FollowedSequence that makes fit's batches; None if there is no Sequence.
        callbacks: those of fit. Their attributes of plain types that have changed since the fit began are state.
        epoch: the first epoch of fit.
        resumed: values() of the training that this one resumes, or None. Only a fit from its epoch resumes it.
    """

    def __init__(self, model, sequence, callbacks, epoch, resumed):
        self._model, self._callbacks, self.sequence = model, callbacks, sequence
        self._resumed = resumed if resumed is not None and resumed["epoch"] == epoch else None
        self._initial = {}  # by callback: its ChangedAttributes
        self._rows = self._rows_before = None  # the order of the rows in this epoch, and in the one before
        self._begin_logs()
        within = self._resumed["within"] if self._resumed else None
        self._has_metrics = self._resumed is None or self._resumed["metrics"] == model.metrics_names
        self._replayed, self._to_replay = 0, len(within["logs"]) if within is not None and self._has_metrics else 0
        self._variables, self._values, self._params = [], [], {}
        if self._resumed is not None:
            self._resume_before()

    stopped = property(lambda self: self._resumed is not None and self._resumed["stopped"], doc="EarlyStopping had ended the training.")
    batch = property(lambda self: self._to_replay, doc="The number of batches that the first epoch replays.")
    replays = property(lambda self: self._replayed < self._to_replay, doc="Whether the loop is at a batch that is replayed.")

    def begin(self, params):
        """To be called when all callbacks have begun the training, with their `params`. Returns what cannot be resumed, as texts."""
        if self._initial:  # another Checkpoints has called it
            return []
        self._initial = {key: ChangedAttributes(each, _OF_KERAS | set(getattr(each, "not_restored", ()))) for key, each in self._named()}
        self._set_params(params)
        if self._resumed is None:
            return []
        texts = [] if self._has_metrics else ["the model has other metrics than the saved one: its callbacks and epoch begin anew"]
        if self._to_replay and self._resumed["params"] != self._params:
            texts.append(f"the data are {self._params}, and those of the checkpoint {self._resumed['params']}: the epoch begins anew")
            self._to_replay = 0
        self._set_callbacks()
        self._set_variables()
        accumulated = self._accumulated()
        if accumulated is not None and self._resumed["accumulated"] is not None and accumulated[0] == self._resumed["accumulated"][0]:
            _set_values(accumulated[1], self._resumed["accumulated"][1])
        set_random_states(self._random)
        if not self._model.train_function.set_random_ops(self._resumed["random_ops"]):
            texts.append("the model has other random layers than the saved one: their numbers begin anew")
        return texts

    def begin_epochs(self):
        """To be called at the beginning of the first epoch, or at the end of the training if it has no epoch."""
        if self._to_replay:  # the saved states, which replace those that on_epoch_begin has set
            self._set_callbacks()
            self._set_variables()
            self._model.train_function.set_random_ops(self._resumed["random_ops"])
            set_random_states(self._resumed["within"]["random"])
        elif self._resumed is not None:
            self._set_callbacks(self._named()[-1:])  # the history
        self._variables, self._values = [], []

    def begin_epoch(self, params):
        self._begin_logs()
        self._set_params(params)  # the length of a Sequence may change
        self._random, self._place = self._random_states(), self.sequence and self.sequence.place(ended=True)

    def end_batch(self, batch, logs):
        if batch < self._batches:  # another Checkpoints has called it
            return
        values = [(logs or {}).get(label) for label in self._model.metrics_names]
        if not self._dtypes:
            self._dtypes = [np.asarray(value).dtype.str for value in values]
        try:
            self._logs.extend(map(float, values))
        except (TypeError, ValueError):  # a callback has changed the logs
            self._whole = False
        self._batches += 1

    def values(self, epoch, batch, logs=None):
        """The state after `batch` batches of this epoch, as plain values. logs: those of the epoch that ends. A collective of all ranks."""
        accumulated = self._accumulated()
        if accumulated is not None:
            steps, variables = accumulated
            accumulated = steps, K.batch_get_value(variables) if K.get_value(variables[0]) else []
        function = getattr(self._model, "train_function", None)  # None in a loop of the program
        return {
            **self._of_data(batch),
            "epoch": epoch,
            "metrics": [*self._model.metrics_names],
            "stopped": not batch and getattr(self._model, "stop_training", False) and self._stops(epoch),
            "params": self._params,
            "random_ops": [] if function is None else function.random_ops(),
            "callbacks": self._changed(epoch, logs),
            "stateful": K.batch_get_value(self._stateful()),
            "accumulated": accumulated,
            "within": self._within() if batch else None,
        }

    def shuffle(self, rows, shuffled):
        """Returns shuffled(rows), where rows are those of the epoch before."""
        if self._resumed is not None and self._rows is None and self._resumed["rows"] is not None:
            if len(self._resumed["rows"]) == len(rows):
                rows[:] = self._resumed["rows"]
        self._rows_before = rows.copy()
        self._rows = shuffled(rows)
        return self._rows

    def step(self, function):
        """The train function for the loop: it returns the logs of batches that are replayed."""
        return _Step(self, function) if self._to_replay else function

    def logs_to_replay(self):
        within = self._resumed["within"]
        return [np.dtype(dtype).type(value) for dtype, value in zip(within["dtypes"], within["logs"][self._replayed])]

    def end_replayed_batch(self):
        within = self._resumed["within"]
        self._dtypes = within["dtypes"]
        self._logs.extend(within["logs"][self._replayed])
        self._batches += 1
        self._replayed += 1
        if not self.replays:
            if isinstance(self._model.train_function, _Step):
                self._model.train_function = self._model.train_function.function
            _set_values(self._sums(), within["sums"])
            set_random_states(self._resumed["random"])

    def _random_states(self):
        """None if a thread of Keras draws random numbers meanwhile."""
        return random_states() if self.sequence is None or self.sequence.in_turn else None

    def _set_params(self, params):
        self._params = {name: (params or {}).get(name) for name in ("batch_size", "samples", "steps")}

    def _begin_logs(self):
        self._logs, self._dtypes, self._whole, self._batches = array("d"), [], True, 0

    def _resume_before(self):
        """To be called before the loop: Keras reads the length of a Sequence, and callbacks may change variables."""
        if self._to_replay == 0:
            set_random_states(self._resumed["random"])
        if self.sequence is not None and self._resumed["place"] is not None:
            self.sequence.resume(self._resumed["place"])
        self._random = self._random_states()
        optimizer = self._model.optimizer
        settings = [value for value in vars(optimizer).values() if K.is_variable(value)]  # the learning rate and others
        unique = {id(variable): variable for variable in [*self._model.weights, *optimizer.weights, *settings]}
        self._variables = list(unique.values())
        self._values = K.batch_get_value(self._variables)

    def _set_variables(self):
        """What the checkpoint has, although callbacks may have changed it since."""
        _set_values(self._variables, self._values)
        _set_values(self._stateful(), self._resumed["stateful"])

    def _stops(self, epoch):
        """Whether EarlyStopping has ended the training after this number of epochs: it would do so again."""
        stopping = [each for each in self._callbacks if isinstance(each, EarlyStopping)]
        return any(each.stopped_epoch == epoch - 1 and each.wait >= each.patience for each in stopping)

    def _of_data(self, batch):
        """The values that decide which rows come next. With local feeds, only those that all ranks have."""
        place = self._place if batch else self.sequence and self.sequence.place(ended=False)
        rows = self._rows_before if batch else self._rows
        values = {"random": self._random_states(), "place": place, "rows": rows}
        if _core.local_feeds():
            values = {name: None if ranks.first_difference([checksum(value)]) is not None else value for name, value in values.items()}
        return values

    def _within(self):
        """The finished batches of an epoch. None if their logs are not those of all ranks, or are not numbers."""
        if _core.local_feeds() or not self._whole:
            return None
        logs = np.asarray(self._logs).reshape(self._batches, -1)
        sums = K.batch_get_value(self._sums())
        return {"random": self._random, "logs": logs, "dtypes": self._dtypes, "sums": sums}

    def _named(self):
        """(class and number, callback) of the callbacks that have a state; the last one is the history."""
        counts, named = {}, []
        for each in [*self._callbacks, getattr(self._model, "history", None) or History()]:
            kind = type(each).__name__
            counts[kind] = counts.get(kind, 0) + 1
            named.append((f"{kind} {counts[kind]}", each))
        return named

    def _changed(self, epoch, logs):
        changed = {}
        for key, each in self._named():
            if each is getattr(self._model, "history", None) and logs is not None:  # it adds the epoch after the other callbacks
                history, each = each, History()
                each.epoch, each.history = [*history.epoch], {name: [*values] for name, values in history.history.items()}
                each.on_epoch_end(epoch - 1, logs)
            changed[key] = self._initial[key].of(each)
        return changed

    def _set_callbacks(self, named=None):
        for key, each in named or self._named() if self._has_metrics else []:
            put(each, self._resumed["callbacks"].get(key, {}))

    def _stateful(self):
        """The variables of layers that keep their state between batches."""
        found, layers = {}, [self._model]
        for layer in layers:
            inner = [getattr(layer, name, None) for name in ("layer", "forward_layer", "backward_layer", "cell")]
            layers += [each for each in [*inner, *getattr(layer, "layers", ())] if each is not None]
            states = getattr(layer, "states", None) if getattr(layer, "stateful", False) else None
            found |= {id(state): state for state in states or () if K.is_variable(state)}
        return list(found.values())

    def _sums(self):
        return [weight for metric in self._model._get_training_eval_metrics() for weight in metric.weights]

    def _accumulated(self):
        """(number of batches per update, sums of the gradients), or None if the optimizer does not accumulate them."""
        accumulations = getattr(self._model.optimizer, "_accumulations", None)
        return (self._model.optimizer._accumulated_steps, accumulations[-1].state()) if accumulations else None


class _Step:
    def __init__(self, state, function):
        self._state, self.function = state, function

    def __call__(self, inputs):
        return self._state.logs_to_replay() if self._state.replays else self.function(inputs)

    def __getattr__(self, name):
        return getattr(self.function, name)


_fits = threading.local()  # all: the states of the running fits of this thread, or None without checkpoints, the innermost last


def _current():
    return (getattr(_fits, "all", None) or [None])[-1]


@contextlib.contextmanager
def running(model, state):
    """Context of the loop of a fit with this state; None: it has no checkpoints."""
    _fits.all = [*getattr(_fits, "all", ()), state]
    if state is not None:
        model.train_function = state.step(model.train_function)
    try:
        with contextlib.nullcontext() if state is None or state.sequence is None else state.sequence:
            yield
    finally:
        if isinstance(model.train_function, _Step):
            model.train_function = model.train_function.function
        _fits.all.pop()


def _hooks(call):
    def _call_batch_hook(self, mode, hook, batch, logs=None):
        state = _current()
        if state is None or not state.replays or mode != "train":
            return call(self, mode, hook, batch, logs)
        for callback in self.callbacks:
            if isinstance(callback, (BaseLogger, ProgbarLogger)):
                getattr(callback, f"on_train_batch_{hook}")(batch, logs or {})
        if hook == "end":
            state.end_replayed_batch()

    return _call_batch_hook


def _shuffled(rows):
    np.random.shuffle(rows)
    return rows


class _Random:
    """The module numpy.random for the loop over arrays."""

    def __getattr__(self, name):
        return getattr(np.random, name)

    def shuffle(self, rows):
        state = _current()
        return _shuffled(rows) if state is None else state.shuffle(rows, _shuffled)


class _Numpy:
    """The module numpy for the loop over arrays."""

    random = _Random()

    def __getattr__(self, name):
        return getattr(np, name)


def _batch_shuffle(shuffle):
    def batch_shuffle(rows, batch_size):
        state = _current()
        return shuffle(rows, batch_size) if state is None else state.shuffle(rows, lambda order: shuffle(order, batch_size))

    return batch_shuffle


CallbackList._call_batch_hook = _hooks(CallbackList._call_batch_hook)
training_arrays.np = _Numpy()
training_arrays.batch_shuffle = _batch_shuffle(training_arrays.batch_shuffle)
