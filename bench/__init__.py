"""The project's benchmark; ``python3 bench`` runs it."""
