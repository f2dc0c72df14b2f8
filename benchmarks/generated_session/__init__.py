"""The generated session: `eighty_instances` joins chains of attempts with their verdicts. No figure here was measured."""
