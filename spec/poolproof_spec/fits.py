"""Whether a demand fits a state, as it is decided: ids suffice, and the sweep finds windows (docs/spec.md#d-fits)."""

from poolproof_spec.demand import Demand
from poolproof_spec.occupancy import occupancies
from poolproof_spec.state import PoolState
from poolproof_spec.sweep import sweep


def ids_suffice(state: PoolState, demand: Demand) -> bool:
    """Whether both id spaces have the ids that the demand takes."""
    return demand.full_pages <= len(state.free_token_ids) and demand.state_pages <= len(state.free_state_ids)


def fits(state: PoolState, demand: Demand) -> bool:
    """[D-fits] as it is decided in practice: ids suffice and the sweep finds windows."""
    return ids_suffice(state, demand) and bool(sweep(occupancies(state, demand)).fits)
