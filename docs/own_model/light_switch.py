"""The shortest chart: a light that somebody switches on, and that goes off by itself."""

import mesa

from prism_mesa import Statechart, StatechartAgent, Transition, after, draw_chart


class Light(StatechartAgent, mesa.Agent):
    chart = Statechart(["off", "on"], [Transition("press", "off", "on"), Transition(after(3), "on", "off")], "off")


def draw():
    """Return a figure of the chart."""
    return draw_chart(Light.chart)


if __name__ == "__main__":
    light = Light(mesa.Model())
    light.fire("press")
    print([light.state, *(light.tick() or light.state for _ in range(3))])
    draw().savefig("light-switch.png", dpi=150, bbox_inches="tight")
