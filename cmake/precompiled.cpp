// Nothing: precompiled headers need a file that they are compiled for.
