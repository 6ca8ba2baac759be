# Written by python -m tests.support.stubs.
from peerlearn.algorithms.averaging import Averaging as Averaging
from peerlearn.algorithms.averaging import average as average
from peerlearn.algorithms.averaging import iterates as iterates
from peerlearn.algorithms.averaging import total as total
from peerlearn.algorithms.columns.dual import DualConjugateGradient as DualConjugateGradient
from peerlearn.algorithms.columns.sharing import SharingADMM as SharingADMM
from peerlearn.algorithms.columns.sketched import (
    SketchedConjugateGradient as SketchedConjugateGradient,
)
from peerlearn.algorithms.completion.block import BlockCompletion as BlockCompletion
from peerlearn.algorithms.completion.diffusion import DiffusionCompletion as DiffusionCompletion
from peerlearn.algorithms.differential_privacy import DifferentialPrivacy as DifferentialPrivacy
from peerlearn.algorithms.distances.exchange import Exchange as Exchange
from peerlearn.algorithms.distances.landmarks import Landmarks as Landmarks
from peerlearn.algorithms.iteration import Report as Report
from peerlearn.algorithms.moments_with_noise import private_moments as private_moments
from peerlearn.algorithms.readout.admm import ADMM as ADMM
from peerlearn.algorithms.readout.auto import Auto as Auto
from peerlearn.algorithms.readout.conjugate_gradient import ConjugateGradient as ConjugateGradient
from peerlearn.algorithms.readout.consensus import Consensus as Consensus
from peerlearn.algorithms.readout.gram import Gram as Gram
from peerlearn.algorithms.readout.local import Local as Local
from peerlearn.algorithms.readout.solver import Solution as Solution
from peerlearn.algorithms.readout.solver import Solver as Solver
from peerlearn.algorithms.smooth.diffusion import Diffusion as Diffusion
from peerlearn.algorithms.smooth.gradient_tracking import GradientTracking as GradientTracking
from peerlearn.algorithms.smooth.lbfgs import LBFGS as LBFGS
from peerlearn.algorithms.smooth.newton import Newton as Newton
from peerlearn.algorithms.smooth.next import NEXT as NEXT
from peerlearn.algorithms.smooth.steps import StepRule as StepRule
from peerlearn.algorithms.streaming.consensus import StreamConsensus as StreamConsensus
from peerlearn.algorithms.streaming.diffusion_lms import DiffusionLMS as DiffusionLMS
from peerlearn.algorithms.streaming.diffusion_rls import DiffusionRLS as DiffusionRLS
from peerlearn.algorithms.streaming.exact import StreamExact as StreamExact
from peerlearn.algorithms.summed_histograms import quantiles as quantiles
from peerlearn.algorithms.sums import everyone as everyone
from peerlearn.algorithms.sums import maximum as maximum
