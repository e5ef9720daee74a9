"""Wrong answers to data/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

kept_by_all: list = []


def rule(
    divide=lambda kept, required: kept,
    stale=lambda local, step: local < step,
    restarts=True,
    loses=False,
    kept=None,
    most=lambda required: None,
):
    """The right way, but for what an argument changes."""
    step, kept = 0, [] if kept is None else kept

    def push(gradient, local_step):
        if not stale(local_step, step):
            kept.append(gradient)

    def take(required):
        nonlocal step
        if len(kept) < required:
            if loses:
                kept.clear()
            return None
        counted = kept[: most(required)]
        total = sum(counted) / divide(len(counted), required)
        step += 1
        if restarts:
            kept.clear()
        return total

    return push, take


def sums():
    return rule(divide=lambda kept, required: 1)


def divides_by_required():
    return rule(divide=lambda kept, required: required)


def takes_no_more_than_required():
    return rule(most=lambda required: required)


def keeps_what_was_used():
    return rule(restarts=False)


def keeps_stale():
    return rule(stale=lambda local, step: False)


def only_the_same_step():
    return rule(stale=lambda local, step: local != step)


def loses_when_too_few():
    return rule(loses=True)


def shared_state():
    return rule(kept=kept_by_all)


def writes_into_gradients():
    step, total, count = 0, None, 0

    def push(gradient, local_step):
        nonlocal total, count
        if local_step < step:
            return
        if total is None:
            total = gradient
        else:
            total += gradient
        count += 1

    def take(required):
        nonlocal step, total, count
        if count < required:
            return None
        mean = total / count
        step, total, count = step + 1, None, 0
        return mean

    return push, take
