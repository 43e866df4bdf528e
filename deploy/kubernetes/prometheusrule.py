"""The rules, for the Prometheus operator: `python deploy/kubernetes/prometheusrule.py` writes prometheusrule.yaml."""

from __future__ import annotations

from pathlib import Path

RULES = Path(__file__).parents[1] / "prometheus" / "rules"
TARGET = Path(__file__).parent / "prometheusrule.yaml"
HEAD = """\
# Written by deploy/kubernetes/prometheusrule.py from deploy/prometheus/rules/: change those, and run it.
# If your Prometheus selects rules by labels (ruleSelector), add them.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: knapserve
  labels: {app.kubernetes.io/name: knapserve}
spec:
  groups:
"""


def written() -> str:
    """As text, so that comments and line breaks stay."""
    groups = [
        line for name in ("recording", "alerts") for line in (RULES / f"{name}.yml").read_text("utf-8").split("\n")
    ]
    kept = [f"  {line}" if line else "" for line in groups if line != "groups:"]
    return HEAD + "\n".join(kept).rstrip("\n") + "\n"


if __name__ == "__main__":
    TARGET.write_text(written(), "utf-8")
