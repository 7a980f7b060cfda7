"""Field experiments: published outcomes, and what PRISM says about them."""
