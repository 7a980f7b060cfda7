# The public names, each once. lazy_loader reads them from here, and so do type checkers and editors.
from .cascade_tree import cascade_tree_figure as cascade_tree_figure
from .cascades import cascades_figure as cascades_figure
from .chart import chart_figure as chart_figure
from .distilled import draw_distilled as draw_distilled
from .drawing import draw_run as draw_run
from .economy import draw_economy as draw_economy
from .engagement import engagement_figure as engagement_figure
from .feeds import feeds_figure as feeds_figure
from .files import save as save
from .homophily import homophily_figure as homophily_figure
from .inequality import lorenz_figure as lorenz_figure
from .opinions import opinions_figure as opinions_figure
from .oracle import oracle_figure as oracle_figure
from .states import states_figure as states_figure
from .style import caption_of as caption_of
from .survey import draw_survey as draw_survey
from .timeline import timeline_figure as timeline_figure
