"""Records the launches of a call as a tape, and plays the tape on a GPU without the candidate's source."""
