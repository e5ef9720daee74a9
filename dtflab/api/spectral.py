"""tf.spectral: Fourier transforms."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.linalg.spectral import fft, fft2d, fft3d, ifft, ifft2d, ifft3d, irfft, irfft2d, irfft3d, rfft, rfft2d
from dtflab.ops.linalg.spectral import rfft3d

__getattr__ = _missing_in("tf.spectral", globals())
