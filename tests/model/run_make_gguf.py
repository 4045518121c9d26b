"""Runs the make_gguf.py named first, with the arguments after it, under any NumPy.

The script counts on a float32 array times a NumPy scalar being float32. From NumPy 2 on it is float64, and what should be f32
weights (every router) would be halves of doubles; times a Python float it stays float32.
"""
import math
import runpy
import sys

import numpy

array_sqrt = numpy.sqrt
numpy.sqrt = lambda x: math.sqrt(x) if isinstance(x, int) else array_sqrt(x)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
