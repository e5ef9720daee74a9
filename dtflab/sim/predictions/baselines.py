"""Baselines: what one would say without a model of machines. A prediction that is not better achieves nothing.

Three of them: linear scaling; n(1 − c·log2 n) with one constant for everything; and this model with uniform shards,
where every variable is cut evenly over all servers.

Rule: a baseline sees what the model sees. The constant is fitted to all points that may be fitted to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dtflab.sim.predictions import recurrent
from dtflab.sim.predictions.points import Point, Points, PredictionError
from dtflab.sim.predictions.predict import Predictor, middle
from dtflab.sim.predictions.setups import batch_of, hosts_of, per_second, units_of

RATES = ("throughput", "speedup", "scaling_efficiency")
TIMES = ("step_time", "median_step_time")
LEAST = 1e-3  # of linear scaling: the logarithmic law becomes negative


@dataclass(frozen=True)
class Scaling:
    """n GPUs are as fast as n(1 − constant · log2 n) of them; linear with constant 0. One GPU is the model's."""

    predictor: Predictor
    constant: float = 0.0

    def __call__(self, point: Point) -> float:
        """The prediction for a point. Raises PredictionError where a metric is not about scaling."""
        if point.setup.text("kind") or point.metric not in RATES + TIMES:
            raise PredictionError(f"a scaling law does not predict {point.setup.text('kind') or point.metric}")
        one_s, gpus, examples = self._one(point)
        part = max(LEAST, 1 - self.constant * math.log2(gpus))
        if point.metric == "throughput":
            return gpus * examples / one_s * part
        if point.metric in TIMES:
            return one_s / part * per_second(point.unit)
        return part * gpus if point.metric == "speedup" else part

    def _one(self, point: Point) -> tuple[float, int, float]:
        """Seconds that a GPU computes for one step, GPUs, and examples of each."""
        if recurrent.is_split(point.setup):
            gpus = math.prod(hosts_of(point))
            return point.given.need("single_gpu_step") / gpus, gpus, batch_of(point) * units_of(point) / gpus
        question = self.predictor.question(point)
        return question.compute_s, question.gpus, question.examples


def fitted_constant(predictor: Predictor, known: Points) -> float:
    """The constant with the least sum of errors' logarithms, to three digits."""
    linear, off = Scaling(predictor), []
    for point in known:
        try:
            error = math.log(linear(point) / middle(known.published[point.id]))
        except PredictionError:
            continue
        off.append((-error if point.metric in TIMES else error, math.log2(math.prod(hosts_of(point)))))

    def loss(constant: float) -> float:
        return sum(abs(error + math.log(max(LEAST, 1 - constant * doublings))) for error, doublings in off)

    return min((i / 1000 for i in range(151)), key=loss)


def baselines(predictor: Predictor, known: Points, uniform: Predictor) -> dict[str, Callable[[Point], float]]:
    """All three by name; `uniform` is the model without hot variables, fitted again."""
    constant = fitted_constant(predictor, known)
    return {
        "linear": Scaling(predictor),
        f"n(1 − {constant:.3f}·log2 n)": Scaling(predictor, constant),
        "uniform shards": uniform,
    }
