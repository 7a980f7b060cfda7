"""What users call: run something, open it again, ask why, make a study. Runs meet their pictures only here."""
