"""Figures for notebooks."""

from io import BytesIO

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure that notebooks display, whether or not pyplot was imported.

    IPython learns to show matplotlib's own figures only when pyplot is imported.
    """

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", facecolor="white", metadata={"Software": None})
        return file.getvalue()
