"""What makes SGLang 0.5.21 serve EAGLE3 on a CPU besides its kernels: a plugin, and a way to import torchvision."""
