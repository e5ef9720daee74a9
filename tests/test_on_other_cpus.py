from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests import on_other_cpus

SAY = """
import json, numpy, threadpoolctl
features = numpy.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
print(json.dumps([features, [pool["architecture"] for pool in threadpoolctl.threadpool_info()]]))
"""


def as_run_with(variables):
    found = subprocess.run([sys.executable, "-c", SAY], env={**os.environ, **variables}, stdout=subprocess.PIPE)
    return json.loads(found.stdout)


@pytest.mark.parametrize("name", on_other_cpus.configurations())
def test_the_cpu_is_another(name):
    features, kernels = as_run_with(on_other_cpus.configurations()[name])
    if name == "NumPy's baseline":
        assert features == []
    else:
        alike = {"Prescott": "Katmai", "Zen": "Haswell"}  # some builds of OpenBLAS have one set of kernels for two
        assert kernels in ([name], [alike.get(name)])


def test_files_that_compare_numbers_are_found():
    files = on_other_cpus.files()
    assert {"tests/test_every_op.py", "tests/ops/oracle/test_linear_algebra.py", "tests/ops/test_nn.py"} <= {*files}
    assert not {"tests/test_house.py", "tests/base/oracle/test_leaf_errors.py"} & {*files}
