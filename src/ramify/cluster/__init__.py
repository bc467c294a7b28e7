"""The same models on Ray: training and prediction on the nodes of a cluster, or on the cores of one machine.

`fit` trains a classifier on a Ray Dataset, a list of files or (X, Y), and gives the bits of `classifier.fit`. `predict`
answers a whole data set, `split` cuts a model that is larger than a node into parts for it. They need the extra `ray`:
``pip install 'ramify[ray]'``.
"""

from ramify.cluster.fitting import fit
from ramify.cluster.prediction import predict
from ramify.cluster.split import split
from ramify.cluster.workers import ClusterError, RayMissing

__all__ = ["ClusterError", "RayMissing", "fit", "predict", "split"]
