"""The oracle: questions, prompts, answers, the ledger, and the clients that speak to an LLM. No Mesa, no agents."""
