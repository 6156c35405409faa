"""Times a training step in PyTorch, eager: torch_step.py --model M --threads T --steps N --json."""

import torch

import measure
import torch_model


def main():
    args = measure.arguments()
    torch.set_num_threads(args.threads)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1)
    step = torch_model.training_step(args.model, torch_model.network(args.model).train())
    seconds = measure.median_step_seconds(step, lambda: None, args.steps)
    measure.report(args, seconds, f"PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
