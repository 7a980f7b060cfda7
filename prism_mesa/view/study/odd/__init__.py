"""The ODD protocol of a model as it is configured (Grimm et al. 2020, doi:10.18564/jasss.4259)."""
