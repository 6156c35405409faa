"""Times a network in one process: net_times.py --model NAME --threads T --json [--framework keras|torch|torch_compile|openvino] [--jit]

keras: Keras 2.3.1 on Syncline with KERAS_BACKEND=syncline, Keras 3 on JAX with KERAS_BACKEND=jax, otherwise tf_keras on
TensorFlow; --jit lets TensorFlow compile with XLA. torch is eager. openvino only predicts. The networks are those of
keras_nets.py and torch_nets.py.

--batch N: another batch. --training N: exactly N training steps and no prediction, as several ranks need.

One line of JSON. Times in ms, each the least of at least 5 calls and 2 s: train_ms (a step on a batch in memory, Adam), predict_ms
(of the same batch), predict_one_ms (of one row); first_ms is the first training step, which makes the plan. train_peak_mib is
the peak memory of the process until then.
"""

import os
import tempfile
import time

import keras_fit
import keras_nets
import measure
import numpy

LEAST_CALLS, LEAST_SECONDS = 5, 2.0


def least_ms(call, calls=None):
    """The least time of so many calls, or else of LEAST_CALLS and LEAST_SECONDS."""
    times, begin = [], time.perf_counter()
    while len(times) < (calls or LEAST_CALLS) or (not calls and time.perf_counter() - begin < LEAST_SECONDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def jax_keras(_):
    """JAX takes as many threads as the process may use cores."""
    import jax
    import keras

    return keras, f"Keras {keras.__version__} on JAX {jax.__version__}"


class InKeras:
    """train(x, y) and predict(x) of a network, x being what `inputs` makes of arrays; `version` says what computes."""

    def __init__(self, args):
        start = {"syncline": keras_fit.syncline_keras, "jax": jax_keras}
        keras, self.version = start.get(os.environ.get("KERAS_BACKEND"), keras_fit.tensorflow_keras)(args.threads)
        args.libraries_mib = measure.peak_mib()
        model = keras_nets.NETS[args.model].build(keras)
        options = {"jit_compile": True} if args.jit else {}
        model.compile(loss="categorical_crossentropy", optimizer=keras.optimizers.Adam(0.001), **options)
        self.train, self.predict = model.train_on_batch, model.predict_on_batch

    def inputs(self, arrays):
        return arrays


class InTorch:
    def __init__(self, args):
        # torch.compile keeps what it has compiled; with a folder of its own each process compiles as the first one does.
        self.cache = tempfile.TemporaryDirectory()
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = self.cache.name
        import torch
        import torch_nets

        args.libraries_mib = measure.peak_mib()
        torch.set_num_threads(args.threads)
        self.inputs = torch_nets.from_keras
        self.version = f"PyTorch {torch.__version__}"
        net = torch_nets.make(args.model)
        call = torch.compile(net) if args.framework == "torch_compile" else net
        update = torch.optim.Adam(net.parameters(), lr=0.001, fused=True)
        loss_of = torch.nn.CrossEntropyLoss()

        def train(x, y):
            net.train()
            update.zero_grad(set_to_none=True)
            loss = loss_of(call(*x), torch.from_numpy(y))
            loss.backward()
            update.step()
            return loss.item()

        def predict(x):
            net.eval()
            with torch.no_grad():
                return call(*x).softmax(-1).numpy()

        self.train, self.predict = train, predict


class InOpenVino:
    """PyTorch's network, converted and compiled for each shape. In float32, although OpenVINO would choose bfloat16 where it is faster."""

    train = None

    def __init__(self, args):
        import openvino
        import torch
        import torch_nets

        args.libraries_mib = measure.peak_mib()
        self.version = f"OpenVINO {openvino.__version__.split('-')[0]}"
        net, core, compiled = torch_nets.make(args.model).eval(), openvino.Core(), {}
        net = torch_nets.Probabilities(net)
        options = {
            "INFERENCE_NUM_THREADS": args.threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        }

        def predict(x):
            rows = len(x[0])
            if rows not in compiled:
                example = tuple(torch.from_numpy(one) for one in x)
                converted = openvino.convert_model(net, example_input=example, input=[one.shape for one in x])
                compiled[rows] = core.compile_model(converted, "CPU", options).create_infer_request()
            return compiled[rows].infer(x, share_inputs=True, share_outputs=True)

        self.predict = predict

    def inputs(self, arrays):
        import torch_nets

        return [x.contiguous().numpy() for x in torch_nets.from_keras(arrays)]


FRAMEWORKS = {"keras": InKeras, "torch": InTorch, "torch_compile": InTorch, "openvino": InOpenVino}


def main():
    more = {
        "--framework": {"choices": FRAMEWORKS, "default": "keras"},
        "--jit": {"action": "store_true"},
        "--batch": {"type": int},
        "--training": {"type": int},
    }
    args = measure.arguments(models=keras_nets.NETS, more=more)
    contender = FRAMEWORKS[args.framework](args)
    net = keras_nets.NETS[args.model]
    batch = args.batch or net.batch
    random = numpy.random.default_rng(1)
    x, one = (contender.inputs(net.feeds(random, rows)) for rows in (batch, 1))
    y = numpy.eye(keras_nets.CLASSES, dtype="float32")[random.integers(0, keras_nets.CLASSES, batch)]
    times = {}
    if contender.train:
        start = time.perf_counter()
        contender.train(x, y)
        times["first_ms"] = (time.perf_counter() - start) * 1e3
        times["train_ms"] = least_ms(lambda: contender.train(x, y), args.training)
        times["train_peak_mib"] = measure.peak_mib()
    if not args.training:
        contender.predict(x)
        times["predict_ms"] = least_ms(lambda: contender.predict(x))
        contender.predict(one)
        times["predict_one_ms"] = least_ms(lambda: contender.predict(one))
    step_ms = times["train_ms"] if contender.train else times["predict_ms"]
    measure.report(args, step_ms / 1e3, contender.version, batch=batch, samples_per_s=batch / step_ms * 1e3, **times)


if __name__ == "__main__":
    main()
