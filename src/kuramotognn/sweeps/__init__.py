"""Many configurations: experiments, cases, worker processes, Ray, and the search for settings."""
