"""The ODD protocol of a configured model (Grimm et al. 2020, doi:10.18564/jasss.4259)."""
