"""Fields of a CSV file: an empty field has its default, a blank one is an error; types by defaults."""

import re

import dtflab as tf

line = tf.placeholder(tf.string, shape=[])
fields = tf.decode_csv(line, record_defaults=[[-1.0], [-1.0], [-1]])
print([field.dtype.name for field in fields])
with tf.Session() as sess:
    for text in ("1.,2.,0", "7.,,0", ",,", "1. , 2. , 3", "7., ,0", "7.,0", "7.,2.,0.5"):
        try:
            print(repr(text), sess.run(fields, {line: text}))
        except tf.errors.InvalidArgumentError as error:
            print(repr(text), re.search(r"Field \d.*|Expect .*", error.message)[0])
