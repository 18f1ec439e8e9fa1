# A stand-in for a training script: shows what it was told, in order.
import os

for name, value in os.environ.items():
    print(f"{name}={value}")
