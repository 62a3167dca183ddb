"""needlepoint: does a language model find a fact in a long text, at every context length and depth?"""

__version__ = "0.1.0"
