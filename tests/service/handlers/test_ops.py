"""Handlers about the service, over a real socket."""

from pathlib import Path

from tests.service.serving import Service, make_shop, serving


def test_parameters_can_change(service: Service) -> None:
    before = service("GET", "/v1/users/ann/recommendations")
    params = service("GET", "/v1/params")
    assert params["neighbors"] == 2
    fixed = params | {"alpha": 0.1, "repurchase": None}
    assert service("PUT", "/v1/params", json={"alpha": 0.1}) == fixed
    assert service("GET", "/v1/params") == fixed
    assert service("GET", "/v1/users/ann/recommendations") != before
    assert service.code("PUT", "/v1/params", 400, json={"alpha": 2}) == "invalid_body"
    assert service.code("PUT", "/v1/params", 400, json={"grouping": "varying"}) == "invalid_request"
    assert service.code("PUT", "/v1/params", 400, json={"k": 2}) == "invalid_body"
    assert service("PUT", "/v1/params", json={}) == fixed
    assert service("GET", "/v1/learned") == {"learned": False, "alpha": 0.1, "users": 0, "most": [], "least": []}
    assert service("PUT", "/v1/params", json={"alpha": "learned"}) == params
    assert service.code("PUT", "/v1/params", 400, json={"group_size": 2}) == "invalid_request"


def test_learned_weights(service: Service) -> None:
    few = service("GET", "/v1/learned")
    assert (few["learned"], few["users"], few["most"]) == (True, 1, [])
    for user in range(20):
        for basket in range(3):
            service("PUT", f"/v1/users/{user}x/baskets/{basket}", json={"items": ["milk", f"{basket}"]})
    learned = service("GET", "/v1/learned")
    assert learned["users"] == few["users"] + 20
    assert 0 < learned["alpha"] < 1
    assert learned["most"][0]["item"] == "milk"
    assert learned["most"][0]["buyers"] >= 20
    assert learned["most"][0]["factor"] > 1 > learned["least"][0]["factor"]


def test_without_keys_every_caller_is_an_admin(service: Service) -> None:
    assert service("GET", "/v1/me") == {"key": None, "shopper": None, "roles": ["admin", "privacy", "read", "write"]}


def test_health_readiness_and_metrics(service: Service) -> None:
    assert service("GET", "/healthz") == {"ok": True}
    assert service("GET", "/readyz")["ready"] is True
    metrics = service.client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert "unbasket_users 4.0" in metrics.text
    for path in ("/", "/docs"):
        assert service.client.get(path).headers["content-type"].startswith("text/html")


def test_a_service_that_is_loading(tmp_path: Path) -> None:
    with serving(make_shop(tmp_path / "shop.db"), loaded=False) as service:
        assert service("GET", "/healthz") == {"ok": True}
        response = service.client.get("/readyz")
        assert (response.status_code, response.json()["ready"]) == (503, False)
        for method, path in (("GET", "/v1/users/ann"), ("DELETE", "/v1/users/ann"), ("GET", "/v1/stats")):
            assert service.code(method, path, 503) == "not_ready"
        assert service.code("GET", "/v1/users/ann/recommendations", 503) == "not_ready"
        service.loader.load()
        assert service("GET", "/v1/users/ann")["user"] == "ann"
