// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'a434d2fa226f9272e73ec1d547add5e5da9ff612f42944275457d527c1014536'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = 'afe357fd7f84f0aea70f652ffe4d241769d92c677d67b28047ed6d1de98b754f'
