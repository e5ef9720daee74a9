"""tf.sparse: the functions on sparse tensors, under shorter names."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.indexing.functions import sparse_mask as mask
from dtflab.ops.sparse.functions import from_dense, sparse_add as add, sparse_concat as concat
from dtflab.ops.sparse.functions import sparse_expand_dims as expand_dims, sparse_eye as eye
from dtflab.ops.sparse.functions import sparse_fill_empty_rows as fill_empty_rows, sparse_maximum as maximum
from dtflab.ops.sparse.functions import sparse_merge as merge, sparse_minimum as minimum
from dtflab.ops.sparse.functions import sparse_reduce_max as reduce_max, sparse_reduce_max_sparse as reduce_max_sparse
from dtflab.ops.sparse.functions import sparse_reduce_sum as reduce_sum, sparse_reduce_sum_sparse as reduce_sum_sparse
from dtflab.ops.sparse.functions import sparse_reorder as reorder, sparse_reset_shape as reset_shape
from dtflab.ops.sparse.functions import sparse_reshape as reshape, sparse_retain as retain
from dtflab.ops.sparse.functions import sparse_segment_mean as segment_mean, sparse_segment_sqrt_n as segment_sqrt_n
from dtflab.ops.sparse.functions import sparse_segment_sum as segment_sum, sparse_slice as slice
from dtflab.ops.sparse.functions import sparse_softmax as softmax, sparse_split as split
from dtflab.ops.sparse.functions import sparse_tensor_dense_matmul as matmul
from dtflab.ops.sparse.functions import sparse_tensor_dense_matmul as sparse_dense_matmul
from dtflab.ops.sparse.functions import sparse_tensor_to_dense as to_dense, sparse_to_indicator as to_indicator
from dtflab.ops.sparse.functions import sparse_transpose as transpose
from dtflab.ops.sparse.sparse_tensor import SparseTensor, sparse_placeholder as placeholder

__getattr__ = _missing_in("tf.sparse", globals())
