"""A plain interpreter of charts: what `StatechartAgent` is compared with. Nothing here uses the engine."""

import math


class Interpreter:
    """One agent. Nodes are strings; `parents` maps a node to its parent, `children` a parent to its nodes.

    Transitions are dicts with trigger (a name, ("after", n), ("wait", mean) or ("rate", r)), source, target, guard.
    `draw(purpose, ticks)` returns the agent's keyed draw in [0, 1).
    """

    def __init__(self, transitions, children, initial, draw, history=()):
        self.transitions, self.children, self.draw, self.history = transitions, children, draw, history
        self.parents = {child: parent for parent, group in children.items() for child in group}
        self.made = self.entered = 0
        self.last, self.log = {}, []
        self.state = self.first(initial)

    def first(self, node):
        while node in self.children:
            node = self.last.get(node, self.children[node][0]) if node in self.history else self.children[node][0]
        return node

    def path(self, node):
        return [node, *self.path(self.parents[node])] if node in self.parents else [node]

    def enabled(self, trigger, fields):
        """Return the transitions on a trigger that apply: of the innermost node that has any, guards before else."""
        for node in self.path(self.state):
            own = [t for t in self.transitions if (t["name"], t["source"]) == (trigger, node)]
            guarded = [t for t in own if t["guard"] is not None and t["guard"](fields)]
            found = guarded or [t for t in own if t["guard"] is None]
            if found:
                return found[0]
        return None

    def fire(self, trigger, fields):
        chosen = self.enabled(trigger, fields)
        if chosen is not None:
            self.take(chosen)
        return chosen is not None

    def take(self, chosen):
        source, target = self.path(chosen["source"])[1:], self.path(chosen["target"])[1:]
        common = next((node for node in source if node in target), None)
        leaf = self.state
        for node in self.path(leaf)[: self.path(leaf).index(common) if common else None]:
            self.log.append(("exit", node))
            self.last[node] = leaf
        self.state, self.entered = self.first(chosen["target"]), self.made
        for node in self.path(self.state)[: self.path(self.state).index(common) if common else None][::-1]:
            self.log.append(("enter", node))

    def tick(self, fields):
        self.made += 1
        own = [t for t in self.transitions if t["source"] in self.path(self.state)]
        for kind, number, name in dict.fromkeys((*t["trigger"], t["name"]) for t in own if t["trigger"][0] != "event"):
            if kind == "wait":
                number = max(1, math.ceil(-number * math.log1p(-self.draw(f"/wait/{self.state}/{name}", self.entered))))
            if kind in ("after", "wait") and self.made - self.entered >= number and self.fire(name, fields):
                return
        rates = [t for t in own if t["trigger"][0] == "rate" and (t["guard"] is None or t["guard"](fields))]
        position, total = self.draw("/rate", self.made), sum(t["trigger"][1] for t in rates)
        if rates and position < 1 - math.exp(-total):
            position *= total / (1 - math.exp(-total))
            for t in rates:
                position -= t["trigger"][1]
                if position < 0:
                    self.take(t)
                    return
