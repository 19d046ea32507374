"""Wrong operators by one change at one place: sites, mutation operators, scopes.

A reference says where a value is (:func:`k3check.mutate.site.at`); everything else here knows
only axes and numbers, and no operator.
"""
