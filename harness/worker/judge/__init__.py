"""The trusted side: secret inputs, oracles, comparison, findings, verdict."""
