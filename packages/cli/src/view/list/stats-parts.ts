/** By what costs can be told, beside agent and model. */
export const statsParts = ['day', 'session'] as const
