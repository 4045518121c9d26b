"""From published checkpoints to GGUF: what tools/convert and the recorder of goldens share."""
