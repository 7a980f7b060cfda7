"""What must hold in the shop."""

from shop import PRICE, Shop


def test_customers_without_the_money_leave(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop = Shop(lambda prompt: "buying")
    shop.run_for(2)
    assert all((customer.budget < PRICE) == (customer.state == "leaving") for customer in shop.agents)
    shop.reasoner.close()
