"""Who comes and goes in plain Python, one agent at a time, from the text of `presence`; but for the keyed draws."""


class PlainChurn:
    """What each agent is to the platform: there, waits, away or gone."""

    def __init__(self, model):
        self.streams, self.params = model.streams, model.configured
        share, n_accounts = self.params.agents.churn.waiting, sum(account.n for account in self.params.accounts)
        n, n_first = len(model.population), len(model.population) - n_accounts  # accounts do not wait
        self.what = {row: self._first(row, share if row < n_first else 0) for row in range(n)}

    def _first(self, row, share):
        return "waits" if self._draw("waits", row, 0) < share else "there"

    def _draw(self, purpose, row, round_):
        return float(self.streams.uniform(purpose, row, round_=round_)[0])

    @property
    def there(self):
        return {row for row, what in self.what.items() if what == "there"}

    @property
    def joined(self):
        return {row for row, what in self.what.items() if what != "waits"}

    def open(self, round_, n, removed):
        """Let a round open, and return the rows of `churn`.

        Args:
            round_: The round.
            n: Agents that there are, also those whom scripts have made.
            removed: Those whom scripts have removed since the last one opened.
        """
        churn, rows = self.params.for_round(round_).agents.churn, []
        turns = {"there": ("leave", "away"), "waits": ("join", "there"), "away": ("back", "there")}
        for row in range(n):
            what = self.what.get(row)
            if row in removed:
                rows += [(round_, row, "removed")] * (what == "there")
                self.what[row] = "gone"
            elif what is None:
                rows.append((round_, row, "join"))
                self.what[row] = "there"
            elif what in turns and round_:
                event, then = turns[what]
                if self._draw("churn", row, round_) < getattr(churn, event):
                    rows.append((round_, row, event))
                    self.what[row] = then
        return rows
