"""Times a training step in a TensorFlow graph, with tf_keras layers and optimizers:
tensorflow_step.py --model M --threads T --steps N --json."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # noqa: E402
import tf_keras as keras  # noqa: E402

import measure  # noqa: E402


def residual_network():
    layers = keras.layers

    def normalized_conv(x):
        return layers.BatchNormalization()(layers.Conv2D(64, 3, padding="same", use_bias=False)(x))

    x = layers.Input(measure.INPUT["residual"], measure.BATCH["residual"])
    y = layers.ReLU()(normalized_conv(x))
    for _ in range(3):
        inner = layers.ReLU()(normalized_conv(y))
        y = layers.ReLU()(layers.Add()([normalized_conv(inner), y]))
    return keras.Model(x, layers.Dense(10)(layers.GlobalAveragePooling2D()(y)))


def network(model):
    layers = keras.layers
    if model == "residual":
        return residual_network()
    hidden = {
        "mlp_small": [layers.Dense(64, "relu"), layers.Dense(64, "relu")],
        "mlp": [layers.Dense(512, "relu"), layers.Dropout(0.2), layers.Dense(512, "relu"), layers.Dropout(0.2)],
        "cnn": [
            layers.Conv2D(32, 3, activation="relu"), layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2),
            layers.Dropout(0.25), layers.Flatten(), layers.Dense(128, "relu"),
        ],
        "lstm": [layers.Embedding(measure.WORDS, 128), layers.LSTM(128)],
        "gru": [layers.GRU(256)],
    }  # fmt: skip
    net = keras.Sequential([*hidden[model], layers.Dense(1 if model == "lstm" else 10)])
    net.build((None, *measure.INPUT[model]))
    return net


def optimizer(model):
    if model in ("mlp_small", "gru"):
        return keras.optimizers.SGD(0.01)
    if model == "residual":
        return keras.optimizers.SGD(0.01, momentum=0.9)
    if model in ("mlp", "lstm"):
        return keras.optimizers.Adam(0.001)
    return keras.optimizers.Adadelta(1.0, rho=0.95)


def main():
    args = measure.arguments()
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.random.set_seed(1)
    net, update = network(args.model), optimizer(args.model)
    x, labels = (tf.constant(a) for a in measure.data(args.model))
    if args.model == "lstm":
        labels, loss_of = labels[:, None], keras.losses.BinaryCrossentropy(from_logits=True)
    else:
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = loss_of(labels, net(x, training=True))
        variables = net.trainable_variables
        update.apply_gradients(zip(tape.gradient(loss, variables), variables))

    seconds = measure.median_step_seconds(step, lambda: None, args.steps)
    measure.report(args, seconds, f"TensorFlow {tf.__version__}, tf_keras {keras.__version__}")


if __name__ == "__main__":
    main()
