"""How a user's agents and their rows in the tables of a run find each other."""

import mesa
from worlds import small

from prism_mesa import SocialAgent, replay, run


def test_the_table_of_agents_says_which_unique_id_each_agent_has(tmp_path):
    models, made = [], []

    def prepare(model):
        models.append(model)
        made.append(SocialAgent(model, follows=[0, 1], name="New"))
        model.agent(3).remove()
        model.datacollector = mesa.DataCollector(agent_reporters={"name": "name", "activity": "activity"})

    world = {"agents": {"n": 20}, "network": {"mean_degree": 3}, "rounds": 2}
    agents = run(world, out=tmp_path, prepare=prepare, pictures=False).table("agents")
    collected = models[0].datacollector.get_agent_vars_dataframe().loc[2.0]
    joined = agents.merge(collected, left_on="unique_id", right_index=True, suffixes=("", "_collected"))
    assert len(joined) == 20  # all but the one that was removed
    assert joined["name"].equals(joined["name_collected"])
    assert joined["activity"].equals(joined["activity_collected"])
    [new] = agents[agents["name"] == "New"].to_dict("records")
    assert (new["unique_id"], new["agent"]) == (made[0].unique_id, made[0].row) == (21, 20)
    assert agents.loc[agents["agent"] == 3, "unique_id"].tolist() == [4]


def test_no_agent_of_another_class_has_the_unique_id_of_a_row():
    model = small()
    other = [mesa.Agent(model) for _ in range(3)]
    ids = [agent.unique_id for agent in model.agents]
    assert len(set(ids)) == len(ids) == 33
    assert all(agent.unique_id < 0 for agent in other)


def test_a_run_from_before_the_column_is_repeated_by_the_columns_that_it_has(tmp_path):
    made = run({"agents": {"n": 20}, "network": {"mean_degree": 3}, "rounds": 1}, out=tmp_path, pictures=False)
    made.table("agents").drop(columns="unique_id").to_parquet(made.run_dir / "agents.parquet")
    assert replay(made).equal
    made.table("agents").assign(other=1).to_parquet(made.run_dir / "agents.parquet")
    assert "its columns are agent" in replay(made).differences["agents"]
