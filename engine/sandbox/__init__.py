"""Processes with limits on time and memory, which run programs of strangers: grammars and chat templates."""
