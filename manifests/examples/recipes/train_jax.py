"""JAX: a small network learns the sine; each process holds its own part of the batch, XLA averages the gradients."""
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS, BATCH, RATE = 500, 64, 0.02


def predict(params, x):
    return jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def loss_of(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def step(params, x, y):
    loss, gradient = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda weight, slope: weight - RATE * slope, params, gradient), loss


def main():
    jax.distributed.initialize(f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
                               int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))
    rank, count = jax.process_index(), jax.process_count()
    print(f"rank {rank} of {count} sees {jax.device_count()} devices", flush=True)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    by_sample = NamedSharding(mesh, PartitionSpec("data"))

    first, second = jax.random.split(jax.random.key(0))
    params = {"w1": jax.random.normal(first, (1, 32)), "b1": jnp.zeros(32),
              "w2": jax.random.normal(second, (32, 1)) / 8, "b2": jnp.zeros(1)}
    params = jax.device_put(params, NamedSharding(mesh, PartitionSpec()))  # the same on each device
    samples = np.random.default_rng(rank)  # other samples on each rank
    for number in range(1, STEPS + 1):
        x = samples.uniform(-3, 3, (BATCH // count, 1)).astype(np.float32)
        batch = [jax.make_array_from_process_local_data(by_sample, part) for part in (x, np.sin(x))]
        params, loss = step(params, *batch)
        if number % 50 == 0 and rank == 0:
            print(f"step {number} loss {float(loss):.5f}", flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
