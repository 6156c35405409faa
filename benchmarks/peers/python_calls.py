"""Times the overhead of the Python module: python_calls.py --model import|call --steps N --json

import: the import of the backend, including NumPy, in a new process. call: one call of a K.function, x -> 2 x + 1 with
four numbers. KERAS_BACKEND=syncline selects Syncline; otherwise tf_keras.
"""

import os
import time

import measure


def import_backend():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if os.environ.get("KERAS_BACKEND") == "syncline":
        import syncline as K

        return K, lambda: K.placeholder((None, 4)), "Syncline"
    import tf_keras

    return tf_keras.backend, lambda: tf_keras.Input((4,)), f"tf_keras {tf_keras.__version__}"


def main():
    args = measure.arguments(models=("import", "call"))
    start = time.perf_counter()
    K, placeholder, version = import_backend()
    seconds = time.perf_counter() - start
    if args.model == "call":
        import numpy

        x, value = placeholder(), numpy.ones((1, 4), "float32")
        function = K.function([x], [x * 2 + 1])
        seconds = measure.median_step_seconds(lambda: function([value]), lambda: None, args.steps)
    measure.report(args, seconds, version)


if __name__ == "__main__":
    main()
