"""distributed.accumulate_gradients: several accumulated batches have the effect of one batch of all their rows."""

import pytest

from launching import run

PROGRAM = """
    import os, sys, tempfile
    import numpy as np
    import keras
    from keras import backend as K, layers, models, optimizers, regularizers
    from syncline import distributed

    K.set_floatx("float64")
    random = np.random.RandomState(3)
    words, y = random.randint(0, 20, (72, 5)), random.uniform(-1, 1, (72, 2))

    def network(optimizer):
        start = np.random.RandomState(4)
        model = models.Sequential()
        model.add(layers.Embedding(20, 4, input_length=5))
        model.add(layers.Flatten())
        model.add(layers.Dense(6, activation="tanh", kernel_regularizer=regularizers.l2(0.01)))
        model.add(layers.Dense(2, kernel_constraint=keras.constraints.MaxNorm(1.5)))
        model.set_weights([start.uniform(-1, 1, w.shape) for w in model.get_weights()])
        model.compile(optimizer, "mse")
        return model

    def fit(model, batch_size):
        return model.fit(words, y, batch_size=batch_size, epochs=3, shuffle=False, verbose=0).history["loss"]

    makers = [
        lambda: optimizers.SGD(0.2, momentum=0.9, nesterov=True, clipvalue=0.05),
        lambda: optimizers.Adam(0.01, decay=0.1, clipnorm=0.3),
        lambda: optimizers.Nadam(),
        lambda: optimizers.Adadelta(),
    ]
    for make in makers:
        whole, parts = network(make()), network(distributed.accumulate_gradients(make(), 4))
        fit(whole, 24)
        fit(parts, 6)
        for a, b in zip(whole.get_weights() + whole.optimizer.get_weights(), parts.get_weights() + parts.optimizer.get_weights()):
            np.testing.assert_allclose(b, a, 1e-9, 1e-9)
        assert whole.optimizer.get_config() == parts.optimizer.get_config()
        assert int(K.get_value(parts.optimizer.iterations)) == 9

    # Nothing changes before the last batch, and what was added up is forgotten with new weights of the optimizer.
    model = network(distributed.accumulate_gradients(makers[0](), 3))
    reference = network(makers[0]())
    before = model.get_weights()
    model.train_on_batch(words[:6], y[:6])
    model.train_on_batch(words[6:12], y[6:12])
    assert all((a == b).all() for a, b in zip(model.get_weights(), before))
    model.optimizer.set_weights(model.optimizer.get_weights())
    for i in range(3):
        model.train_on_batch(words[i * 5 : i * 5 + 5], y[i * 5 : i * 5 + 5])
    reference.train_on_batch(words[:15], y[:15])
    for a, b in zip(reference.get_weights(), model.get_weights()):
        np.testing.assert_allclose(b, a, 1e-9, 1e-9)

    path = sys.argv[1] + "/model.h5"
    model.save(path)
    loaded = models.load_model(path)
    for a, b in zip(model.get_weights() + model.optimizer.get_weights(), loaded.get_weights() + loaded.optimizer.get_weights()):
        assert (a == b).all()
    loaded.train_on_batch(words, y)

    for error, optimizer, steps in [
        (TypeError, "adam", 2), (ValueError, optimizers.Adam(), 0), (ValueError, model.optimizer, 2), (TypeError, optimizers.Adam(), 1.5)
    ]:
        try:
            distributed.accumulate_gradients(optimizer, steps)
            raise SystemExit("no error")
        except error as e:
            assert steps == 1.5 or str(e).startswith("accumulate_gradients: "), e
    unused = K.variable(np.ones(3))
    try:
        distributed.accumulate_gradients(optimizers.SGD(), 2).get_updates(loss=K.sum(model.weights[0]), params=[unused])
        raise SystemExit("no error")
    except ValueError as e:
        assert "None" in str(e)
    print(*[repr(float(np.sum(w))) for w in model.get_weights()])
"""


@pytest.mark.parametrize("ranks", [0, 2])
def test_is_a_larger_batch(ranks, tmp_path):
    assert len(run(ranks, PROGRAM, str(tmp_path)).split()) == 5


# The gradients' sums over ranks run with the last accumulated batch only; other batches skip them together with the update.
def test_gradients_cross_the_wire_with_the_last_batch():
    program = """
        import numpy as np
        from keras import backend as K, layers, models, optimizers
        from syncline import distributed
        model = models.Sequential([layers.Dense(3, input_shape=(4,))])
        model.compile(distributed.accumulate_gradients(optimizers.Adam(), 2), "mse")
        model.train_on_batch(np.ones((4, 4)), np.ones((4, 3)))
        steps = model.train_function.steps()
        sums = [i for i, step in enumerate(steps) if step["kind"] == "start"]
        guards = [i for i, step in enumerate(steps) if step["kind"] == "guard"]
        labels = [steps[i]["label"] for i in sums]
        assert labels == ["all_reduce: bucket of 1 sums over ranks", "all_reduce: bucket of 2 sums over ranks"], labels
        assert any(i < sums[1] < i + 1 + int(steps[i]["label"].split()[1]) + 1 for i in guards)
        assert not any(i < sums[0] <= i + int(steps[i]["label"].split()[1]) for i in guards)
    """
    run(2, program)
