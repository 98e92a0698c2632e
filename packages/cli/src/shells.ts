/** The shells that there are completions for. */
export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** The hidden verb by which a shell asks for the runs of a ledger. */
export const runsVerb = 'complete-runs'
