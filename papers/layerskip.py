"""LayerSkip (Elhoushi et al., 2024): the first layers and the head draft. Three rules for the draft's length.

- static: γ tokens, or up to a token below a fixed threshold.
- finite-state: γ grows by one after a draft that was accepted in full, and shrinks by one after a rejection (the
  baseline FS of DEL, section 5.1).
- adaptive: a threshold is steered to a target acceptance rate (Zhang et al., 2024, "Draft & Verify").
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.draft.base import DraftPolicy, Outcome, PolicyContext, RequestView
from engine.errors import ConfigError
from engine.plans import exit_plan
from engine.step import Plan
from papers.settings import LayerSkipConfig

# Draft & Verify: `auto_parameters`, and `max_step_draft` of the examples, in the authors' code.
_BETA_1 = 0.5  # share of the old acceptance rate in the new one
_BETA_2 = 0.9  # share of the old threshold in the new one
_EPSILON = 0.01  # step of the threshold
MAX_ADAPTIVE = 12  # tokens of a draft


@dataclass(slots=True)
class DraftLength:
    """The length rule of one request."""

    gamma: int
    threshold: float  # top-1 probability below which a draft ends
    acceptance: float = 0.0  # moving average of the accepted share of drafted tokens


class EarlyExit(DraftPolicy[DraftLength]):
    """Draft with the first layers, by default a quarter of them, and the head."""

    name = LayerSkipConfig.name

    def __init__(self, context: PolicyContext) -> None:
        self._config, layers = context.config.of(LayerSkipConfig), context.spec.layers
        depth = self._config.exit or max(1, round(layers / 4))
        if depth > layers:
            raise ConfigError(f"--layerskip-exit is {depth}, but the model has {layers} layers")
        self._variants = exit_plan(context.spec.layers, depth)
        self._threshold = context.config.draft_confidence

    def new_state(self) -> DraftLength:
        """Return a length rule. The thresholds begin at `draft_confidence`; a finite-state draft has none."""
        if self._config.length == "finite-state":
            return DraftLength(self._config.gamma, 0.0)
        adaptive = self._config.length == "adaptive"
        return DraftLength(MAX_ADAPTIVE if adaptive else self._config.gamma, self._threshold)

    def plan(self, view: RequestView[DraftLength]) -> Plan:
        return Plan(self._variants, view.state.gamma, view.state.threshold)

    def can_reuse_plans(self) -> bool:
        return self._config.length == "static"

    def learn(self, view: RequestView[DraftLength], outcome: Outcome) -> None:
        if outcome.drafted and self._config.length == "finite-state":
            step_length(view.state, outcome)
        elif outcome.drafted and self._config.length == "adaptive":
            steer_threshold(view.state, outcome, self._config.target)


def step_length(state: DraftLength, outcome: Outcome) -> None:
    """Lengthen a finite-state draft by a token after a full accept, else shorten it, to one token at least."""
    state.gamma = state.gamma + 1 if outcome.accepted == outcome.drafted else max(state.gamma - 1, 1)


def steer_threshold(state: DraftLength, outcome: Outcome, target: float) -> None:
    """Move the threshold θ towards the acceptance rate `target` (Draft & Verify, adaptive draft exiting).

        r ← β₁·r + (1 − β₁)·accepted/drafted
        θ ← β₂·θ + (1 − β₂)·(θ + ε if r < target, else θ − ε)

    As in the authors' code, a draft of the greatest length does not lower θ. Bounds of ε and 1 − ε are ours.
    """
    state.acceptance = _BETA_1 * state.acceptance + (1 - _BETA_1) * outcome.accepted / outcome.drafted
    step = 0.0
    if state.acceptance < target:
        step = _EPSILON
    elif outcome.drafted < MAX_ADAPTIVE:
        step = -_EPSILON
    threshold = _BETA_2 * state.threshold + (1 - _BETA_2) * (state.threshold + step)
    state.threshold = min(max(threshold, _EPSILON), 1 - _EPSILON)
