"""The namespace `tf.layers`: functions that make a layer and call it once, and the classes behind them.

Read `base` (what a layer is) and `core` (Dense, the simplest); then `convolutional` (filters that move over images),
`separable` (a filter per channel, then 1×1), `pooling` (the largest or the mean of windows) and `normalization` (mean
0, variance 1).
What they share: `data_format` (where channels stand, padding, sizes), `input_spec` (what a layer requires of inputs),
`activations` (functions by name).
"""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.nets.layers.base import Layer
from dtflab.nets.layers.convolutional import Conv1D, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose, conv1d, conv2d
from dtflab.nets.layers.convolutional import conv2d_transpose, conv3d, conv3d_transpose
from dtflab.nets.layers.core import Dense, Dropout, Flatten, dense, dropout, flatten
from dtflab.nets.layers.input_spec import InputSpec
from dtflab.nets.layers.normalization import BatchNormalization, batch_normalization
from dtflab.nets.layers.pooling import AveragePooling1D, AveragePooling2D, AveragePooling3D, MaxPooling1D, MaxPooling2D
from dtflab.nets.layers.pooling import MaxPooling3D, average_pooling1d, average_pooling2d, average_pooling3d
from dtflab.nets.layers.pooling import max_pooling1d, max_pooling2d, max_pooling3d
from dtflab.nets.layers.separable import SeparableConv1D, SeparableConv2D, separable_conv1d, separable_conv2d

__getattr__ = _missing_in("tf.layers", globals())
