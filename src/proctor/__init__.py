"""proctor: AI-agent benchmarks whose results hold up."""

__version__ = "0.1.0"
