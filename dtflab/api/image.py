"""tf.image: images as files, cut, turned and resized, changed in light and colours, measured."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.conv.functions import extract_image_patches, extract_patches
from dtflab.ops.images.functions import adjust_brightness, adjust_contrast, adjust_gamma, adjust_hue, adjust_saturation
from dtflab.ops.images.functions import convert_image_dtype, crop_and_resize, decode_png, encode_png, flip_left_right
from dtflab.ops.images.functions import flip_up_down, grayscale_to_rgb, hsv_to_rgb, image_gradients
from dtflab.ops.images.functions import per_image_standardization, psnr, random_brightness, random_contrast, random_crop
from dtflab.ops.images.functions import random_flip_left_right, random_flip_up_down, random_hue, random_saturation
from dtflab.ops.images.functions import resize_area, resize_bicubic, resize_bilinear, resize_nearest_neighbor
from dtflab.ops.images.functions import rgb_to_grayscale, rgb_to_hsv, rot90, sobel_edges, total_variation, transpose
from dtflab.ops.images.sizes import ResizeMethod, central_crop, crop_to_bounding_box, pad_to_bounding_box
from dtflab.ops.images.sizes import resize_image_with_crop_or_pad, resize_image_with_pad, resize_images

resize = resize_images
resize_with_crop_or_pad = resize_image_with_crop_or_pad
transpose_image = transpose

__getattr__ = _missing_in("tf.image", globals())
