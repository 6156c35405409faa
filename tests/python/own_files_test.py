"""Files that a script opens itself, and names that differ between ranks, cause one line of advice."""

import pytest

from launching import launch

LINE = "syncline: every rank writes '"

BEGIN = """
    import os
    import numpy as np
    from syncline import distributed as d
    rank = d.rank()
"""

TOLD = {
    "open": "open('same.txt', 'w').write('text')",
    "append": "open('same.txt', 'a').write('text')",
    "savez": "np.savez('same.npz', x=np.ones(3))",
    "picture": "from PIL import Image; Image.new('L', (4, 4)).save('same.png')",
    "descriptor": "os.close(os.open('same.txt', os.O_WRONLY | os.O_CREAT))",
    # In turn: HDF5 refuses a second writer.
    "h5py": "import h5py; h5py.File('same.h5', 'w').close() if trial == rank else None",
}

SILENT = {
    "behind_a_rank": "open('same.txt', 'w').write('text') if rank == 0 else None",
    "of_a_rank": "open('own.%d.txt' % rank, 'w').write('text')",
    "read": "open('same.txt', 'w').close() if rank == 0 else None; d.barrier(); open('same.txt').read()",
    "hdf5_in_memory": "import h5py; h5py.File('same.h5', 'w', driver='core', backing_store=False).close()",
    "temporary": "import tempfile; tempfile.NamedTemporaryFile('w').write('text'); open('/dev/null', 'w').close()",
    "of_keras": """
    import keras
    from keras import layers, models
    model = models.Sequential([layers.Dense(1, input_shape=(2,))])
    model.compile('sgd', 'mse')
    model.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=2, verbose=0, callbacks=[keras.callbacks.CSVLogger('log.csv')])
    model.save('model.h5')
    open('.settings', 'w').close()
    """,
}


@pytest.mark.parametrize("action", TOLD)
def test_one_line(action, tmp_path):
    program = BEGIN + "    for trial in range(3):\n        " + TOLD[action] + "\n        d.barrier()\n"
    ended = launch(3, program, folder=tmp_path)
    assert ended.code == 0 and ended.err.count(LINE) == 1, ended
    assert "/same." in ended.err and "syncline.distributed.rank() == 0" in ended.err, ended


@pytest.mark.parametrize("action", SILENT)
def test_no_line(action, tmp_path):
    ended = launch(2, BEGIN + "    " + SILENT[action].strip() + "\n", folder=tmp_path)
    assert ended.code == 0 and "syncline:" not in ended.err, ended


def test_alone_no_line(tmp_path):
    ended = launch(0, BEGIN + "    open('same.txt', 'w').close()\n", folder=tmp_path)
    assert ended.code == 0 and ended.err == "", ended


def test_a_name_that_is_not_rank_0s(tmp_path):
    program = BEGIN + """
    from keras import layers, models
    model = models.Sequential([layers.Dense(1, input_shape=(2,))])
    for trial in range(2):
        model.save_weights('%d.%d.h5' % (trial, rank))
    """
    ended = launch(2, program, folder=tmp_path, limit=60)
    assert ended.code == 0 and len(list(tmp_path.iterdir())) == 4, ended
    assert ended.err.count("syncline: rank 1 writes '0.1.h5' itself, because rank 0 writes no file of this name. ") == 1, ended
    assert ended.err.count("syncline.distributed.broadcast(name)") == 1, ended
