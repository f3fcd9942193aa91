"""Makes the plan that undoes what another plan did: pure."""
