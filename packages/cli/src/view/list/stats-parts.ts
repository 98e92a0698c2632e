/** By what costs can be listed, beside agent and model. */
export const statsParts = ['day', 'session'] as const
