"""What the facts were measured on: host, GPUs while they worked, versions, where the spec stands in version control."""

from kit.provenance.gpu import GpuWatch
from kit.provenance.host import SpecCommit, host_facts, spec_commit

__all__ = ["GpuWatch", "SpecCommit", "host_facts", "spec_commit"]
