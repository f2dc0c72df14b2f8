"""The agents: methods, language models, prompts, scheduling and the engine process."""
