from unbasket.reproduction.experiments import DATASETS, EXPERIMENTS


def test_experiments_name_known_datasets_only() -> None:
    for experiment in EXPERIMENTS.values():
        assert set(experiment.quick) <= set(experiment.datasets) <= set(DATASETS)
