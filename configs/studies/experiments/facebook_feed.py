"""The ranked feed in the studies of Facebook: posts that the reader is likely to engage with come first.

Facebook ranks by predicted engagement (Lada, Wang and Yan 2021, engineering.fb.com). Here the prediction is as good as
it can be: it knows everything that makes this reader engage, except the reader's random preference for the post. There
is nothing to set.
"""

from prism_mesa import F

predicted_engagement = F.post.expected_utility
