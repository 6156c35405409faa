"""Sessions and eval(), as programs for Keras 2 on TensorFlow 1 use them."""

import os

os.environ["KERAS_BACKEND"] = "syncline"

import numpy as np
import pytest

import syncline as K
from syncline import evaluation
from launching import run


def test_tensors_have_values():
    x = K.placeholder((None, 2))
    assert K.constant([1.0, 2.0]).eval().tolist() == [1, 2] and (K.variable(3.0) * 2).eval() == 6
    assert (x * 2).eval({x: [[1, 2]]}).tolist() == [[2, 4]]
    assert (x * 2).eval(feed_dict={x: np.ones((1, 2))}, session=K.get_session()).sum() == 4
    with pytest.raises(ValueError, match="is needed but not among the inputs"):
        (x * 2).eval()


def test_run():
    x, total = K.placeholder((None, 2), name="x"), K.variable(0.0)
    hidden = K.exp(x)
    session = K.get_session()
    assert session is K.get_session()
    feeds = {x: np.zeros((1, 2)), K.learning_phase(): 0}
    found = session.run([hidden, {"a": (hidden * 2, total)}], feeds)
    assert found[0].tolist() == [[1, 1]] and found[1]["a"][0].tolist() == [[2, 2]] and found[1]["a"][1] == 0
    assert session.run(hidden * 3, feed_dict={hidden: [[1.0, 2.0]]}).tolist() == [[3, 6]]
    for step in range(3):
        assert session.run(K.update_add(total, 2.0)) == 2 * step + 2 == K.get_value(total)
    assert session.run([]) == []
    with session.as_default(), session as same:
        assert same.run(K.in_train_phase(hidden * 0, hidden, K.learning_phase()), {**feeds, K.learning_phase(): 1}).sum() == 0


def test_a_function_is_made_once():
    x = K.placeholder((None,))
    y = x * 2
    K.clear_session()
    for rows in range(5):
        K.get_session().run(y, {x: np.ones(rows)})
    assert evaluation._function.cache_info().misses == 1
    K.clear_session()
    assert evaluation._function.cache_info().currsize == 0


@pytest.mark.parametrize("call, error, words", [
    (lambda s, x: s.run("x:0"), TypeError, "'x:0' in fetches is not a tensor"),
    (lambda s, x: s.run([x, None], {x: 1}), TypeError, "None in fetches is not a tensor"),
    (lambda s, x: s.run(x, {"x:0": 1}), TypeError, "'x:0' in feed_dict is not a tensor"),
    (lambda s, x: s.run(x * 2), ValueError, "is needed but not among the inputs"),
    (lambda s, x: s.run(x, {K.variable(1.0): 2}), ValueError, "cannot be fed"),
    (lambda s, x: s.graph.as_graph_def(), AttributeError, "the session has no attribute 'graph', only run"),
])  # fmt: skip
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(K.get_session(), K.placeholder(()))


def test_as_keras_users_write_it():
    program = """
        import numpy as np
        from keras import backend as K
        from keras.backend import get_session
        from keras.layers import Dense, Dropout
        from keras.models import Sequential
        model = Sequential([Dense(3, input_shape=(2,)), Dropout(0.5), Dense(1)])
        model.compile("sgd", "mse")
        x = np.ones((6, 2))
        out, hidden = get_session().run([model.output, model.layers[0].output], feed_dict={model.input: x, K.learning_phase(): 0})
        assert np.allclose(out, model.predict(x)) and hidden.shape == (6, 3)
        gradients = K.gradients(model.output, model.trainable_weights)
        assert [g.shape for g in K.get_session().run(gradients, {model.input: x, K.learning_phase(): 0})] == [(2, 3), (3,), (3, 1), (1,)]
        assert model.layers[0].kernel.eval().tolist() == model.get_weights()[0].tolist()
        print("same")
    """
    for ranks in (0, 2):
        assert run(ranks, program).endswith("same\n")
