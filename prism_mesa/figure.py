"""Figures for notebooks."""

from io import BytesIO

from matplotlib.figure import Figure


class NotebookFigure(Figure):
    """A figure that notebooks display even if pyplot has not been imported.

    IPython displays other figures of matplotlib only after an import of pyplot.
    """

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", facecolor="white", metadata={"Software": None})
        return file.getvalue()
