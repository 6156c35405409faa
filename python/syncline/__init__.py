"""Syncline: the Keras 2 backend as a runtime for data-parallel training.

`import syncline as K` gives the documented functions of `keras.backend`. Keras 2.3.1 runs on it unmodified with
KERAS_BACKEND=syncline, alone or under `mpirun -n N`.
"""

from syncline.keras_support import compat  # first: it must patch Python, numpy and h5py before the rest of Keras is imported
from syncline import loading  # second: it loads the extension module
from syncline.keras_support import callback_times, sequence_epochs  # before distributed, which extends Keras's classes again
from syncline import distributed
from syncline._core import Function, SparseVariable, Tensor, Update, Variable
from syncline._core import version as __version__
from syncline.functions.activations import (
    batch_normalization,
    binary_crossentropy,
    categorical_crossentropy,
    elu,
    hard_sigmoid,
    in_top_k,
    l2_normalize,
    normalize_batch_in_training,
    relu,
    sigmoid,
    softmax,
    softplus,
    softsign,
    sparse_categorical_crossentropy,
    tanh,
)
from syncline.functions.configuration import (
    backend,
    cast_to_floatx,
    epsilon,
    floatx,
    image_data_format,
    image_dim_ordering,
    set_epsilon,
    set_floatx,
    set_image_data_format,
    set_image_dim_ordering,
)
from syncline.functions.control_flow import (
    foldl,
    foldr,
    in_test_phase,
    in_train_phase,
    map_fn,
    print_tensor,
    rnn,
    switch,
)
from syncline.functions.convolutions import (
    bias_add,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    depthwise_conv2d,
    local_conv1d,
    local_conv2d,
    separable_conv1d,
    separable_conv2d,
)
from syncline.functions.ctc import (
    ctc_batch_cost,
    ctc_decode,
    ctc_label_dense_to_sparse,
)
from syncline.functions.elementwise import (
    abs,
    clip,
    cos,
    equal,
    exp,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    maximum,
    minimum,
    not_equal,
    pow,
    round,
    sign,
    sin,
    sqrt,
    square,
)
from syncline.evaluation import get_session
from syncline.functions.images import (
    resize_images,
    resize_volumes,
    spatial_2d_padding,
    spatial_3d_padding,
    temporal_padding,
)
from syncline.functions.linear_algebra import (
    batch_dot,
    dot,
    gather,
    transpose,
)
from syncline.picture import Picture, plot_graph
from syncline.functions.pooling import (
    pool2d,
    pool3d,
)
from syncline.functions.random_tensors import (
    dropout,
    random_binomial,
    random_normal,
    random_normal_variable,
    random_uniform,
    random_uniform_variable,
    truncated_normal,
)
from syncline.functions.reductions import (
    all,
    any,
    argmax,
    argmin,
    cumprod,
    cumsum,
    logsumexp,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from syncline.functions.session import (
    clear_session,
    control_dependencies,
    get_uid,
    learning_phase,
    manual_variable_initialization,
    name_scope,
    reset_uids,
    set_learning_phase,
)
from syncline.functions.shapes import (
    arange,
    batch_flatten,
    concatenate,
    expand_dims,
    flatten,
    one_hot,
    permute_dimensions,
    repeat,
    repeat_elements,
    reshape,
    reverse,
    slice,
    squeeze,
    stack,
    tile,
)
from syncline.functions.tensors import (
    cast,
    constant,
    count_params,
    dtype,
    get_variable_shape,
    identity,
    int_shape,
    is_keras_tensor,
    is_placeholder,
    is_sparse,
    is_tensor,
    is_variable,
    ndim,
    ones_like,
    placeholder,
    shape,
    size,
    stop_gradient,
    to_dense,
    zeros_like,
)
from syncline.functions.variables import (
    batch_get_value,
    batch_set_value,
    eval,
    eye,
    function,
    get_value,
    gradients,
    moving_average_update,
    ones,
    set_value,
    update,
    update_add,
    update_sub,
    variable,
    zeros,
)

from syncline.error_names import name_errors as _name_errors

_name_errors(globals())  # last: it replaces the functions above
