"""ListNet: cross-entropy of the top-1 distributions of teacher and student (RankCSE eq. 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from opencse.losses.distillation import Distillation, Lists


@dataclass(frozen=True, kw_only=True)
class ListNet(Distillation):
    r"""Cross-entropy between the top-1 distributions of teacher and student (Cao et al., ICML 2007; RankCSE).

    .. math:: L_i = -\sum_{j \ne i} \mathrm{softmax}(T_i)_j \log \mathrm{softmax}(S_i)_j

    averaged over the anchors. For a fixed teacher it is minimal if the student's list equals the teacher's up to a
    constant.
    """

    kind: ClassVar[str] = "list_net"

    exclude_self: bool = True

    def list_loss(self, lists: Lists) -> Tensor:
        """Return the loss of lists; see the class."""
        log_student = F.log_softmax(lists.student.masked_fill(~lists.kept, -math.inf), dim=1)
        teacher = F.softmax(lists.teacher.masked_fill(~lists.kept, -math.inf), dim=1)
        return -(teacher * log_student.masked_fill(~lists.kept, 0)).sum(dim=1).mean()
