"""What other agents can compute from the messages of a run, found before anything is sent."""

from peerlearn.privacy.advice import advise
from peerlearn.privacy.auditor import Audit, Exposure, audit
from peerlearn.privacy.model_audit import Holdings, audit_model

__all__ = ["Audit", "Exposure", "Holdings", "advise", "audit", "audit_model"]
